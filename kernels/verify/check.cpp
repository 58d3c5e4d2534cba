#include "kernels/verify/check.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "kernels/verify/manifest.h"
#include "kernels/verify/npy.h"

namespace cpfit::kernels {

namespace {

namespace fs = std::filesystem;

/// One dimension more in front (a batch of one) is the same array.
std::vector<std::int64_t> without_batch(std::vector<std::int64_t> shape, std::size_t dimensions) {
  while (shape.size() > dimensions && shape.front() == 1) shape.erase(shape.begin());
  return shape;
}

/// Reads dumped arrays and collects what is wrong with them.
class DumpReader {
 public:
  explicit DumpReader(std::string folder) : folder_(std::move(folder)) {}

  /// `path` relative to the folder. Empty when it could not be read; the problem is noted.
  std::vector<double> array(const std::string& path, const std::vector<std::int64_t>& shape) {
    const std::string full = folder_ + "/" + path;
    if (!fs::exists(full)) {
      problems_.push_back({"check.missing", full, "this tensor is missing", "Save it as a numpy array of " + shape_text(shape)});
      return {};
    }
    Outcome<NpyArray> read = read_npy(read_whole_file(full), full);
    if (!read.ok()) {
      problems_.insert(problems_.end(), read.problems().begin(), read.problems().end());
      return {};
    }
    const std::vector<std::int64_t> got = without_batch(read->shape, shape.size());
    if (got != shape) {
      const bool transposed = shape.size() == 2 && got == std::vector<std::int64_t>{shape[1], shape[0]};
      problems_.push_back({"check.shape", full, "its shape is " + shape_text(read->shape) + " instead of " + shape_text(shape),
                           transposed ? "Transpose it" : "Save all tokens in storage order, one row a token"});
      return {};
    }
    const auto bad = std::ranges::find_if(read->values, [](double value) { return std::isnan(value); });
    if (bad != read->values.end()) nan_rows_.push_back(path);
    return std::move(read->values);
  }
  /// A manifest that does not list the file, or not with the shape that its case has: nobody emitted that.
  void contradicts(const std::string& path) {
    problems_.push_back(
        {"manifest.shape", folder_ + "/" + path, "the manifest contradicts itself about this tensor", "Emit the tensors again"});
  }
  [[nodiscard]] const Problems& problems() const { return problems_; }
  [[nodiscard]] bool holds_nan(const std::string& path) const { return std::ranges::find(nan_rows_, path) != nan_rows_.end(); }

 private:
  std::string folder_;
  Problems problems_;
  std::vector<std::string> nan_rows_;
};

const ManifestFile* file_of(const Manifest& manifest, const std::string& path) {
  const auto found = std::ranges::find(manifest.files, path, &ManifestFile::path);
  return found == manifest.files.end() ? nullptr : &*found;
}

/// The five tensors of CASE/`sub`. An lse that is not given is all zeros and not judged.
AttentionTensors read_tensors(DumpReader& reader, const Manifest& manifest, const Case& verified, const char* sub,
                              bool without_lse) {
  const std::string& name = verified.name;
  AttentionTensors tensors;
  std::vector<double>* into[] = {&tensors.out, &tensors.lse, &tensors.dq, &tensors.dk, &tensors.dv};
  for (int i = 0; i < kTensorCount; ++i) {
    const auto tensor = static_cast<TensorName>(i);
    const std::string path = name + "/expected/" + std::string(name_of(tensor)) + ".npy";
    const ManifestFile* expected = file_of(manifest, path);
    if (expected == nullptr || expected->shape != shape_of(verified, tensor)) {
      reader.contradicts(path);
      continue;
    }
    if (without_lse && tensor == TensorName::kLse) {
      into[i]->assign(static_cast<std::size_t>(expected->shape[0] * expected->shape[1]), 0.0);
      continue;
    }
    *into[i] = reader.array(name + "/" + sub + "/" + name_of(tensor) + ".npy", expected->shape);
  }
  return tensors;
}

CheckedCase judged_case(const ManifestCase& emitted, const AttentionTensors& got, const AttentionTensors& truth,
                        const CheckRequest& request) {
  CheckedCase checked;
  checked.verified = emitted.verified;
  const Accumulation wide;
  const auto judged = [&](const Accumulation& accumulation, std::int32_t cp) {
    Judgement judgement = judge(emitted.verified, accumulation, got, truth, emitted.kernel, EmptyRows::kGradients);
    for (int i = 0; i < kTensorCount; ++i) {
      const auto tensor = static_cast<TensorName>(i);
      JudgedTensor& figures = judgement.tensors[static_cast<std::size_t>(i)];
      figures.limit = limits_of(emitted.verified.number, accumulation, cp, tensor, figures.kernel);
      figures.judged = !(request.without_lse && tensor == TensorName::kLse);
    }
    return judgement;
  };
  const std::int32_t cp = request.cp > 0 ? request.cp : emitted.verified.cp;
  checked.verified.cp = cp;
  checked.judgement = judged(request.accumulation.value_or(wide), cp);
  if (!checked.judgement.passed()) checked.passes_when_narrow = judged({false, false, false}, cp).passed();
  return checked;
}

BlockReport judged_block(DumpReader& reader, const Manifest& manifest) {
  BlockReport report;
  report.verified = manifest.block;
  const std::vector<double> loss = reader.array("block/got/loss.npy", {1});
  const std::vector<double> loss_truth = reader.array("block/expected/loss.npy", {1});
  if (loss.empty() || loss_truth.empty()) return report;
  report.loss = loss.front();
  report.loss_truth = loss_truth.front();
  const std::string prefix = "block/expected/grad.";
  for (const ManifestFile& file : manifest.files) {
    if (!file.path.starts_with(prefix)) continue;
    if (file.shape.size() != 2 || file.shape[0] < 1 || file.shape[1] < 1) {
      reader.contradicts(file.path);
      continue;
    }
    const std::string name = file.path.substr(prefix.size(), file.path.size() - prefix.size() - std::string(".npy").size());
    const std::vector<double> truth = reader.array(file.path, file.shape);
    const std::vector<double> got = reader.array("block/got/grad." + name + ".npy", file.shape);
    if (got.empty() || truth.empty()) continue;
    report.errors.push_back(
        {name, errors_of(got, truth, file.shape[1], std::vector<std::uint8_t>(static_cast<std::size_t>(file.shape[0]), 1))});
  }
  report.tolerance = kForeignBlockTolerance;
  return report;
}

}  // namespace

Outcome<CheckReport> check_tensors(const std::string& folder, const CheckRequest& request) {
  const std::string manifest_path = folder + "/manifest.json";
  if (!fs::exists(manifest_path)) {
    return Problem{"check.folder", folder, "there is no manifest.json in it", "Take a folder that `cpfit verify emit` wrote"};
  }
  const Outcome<Manifest> manifest = parse_manifest(read_whole_file(manifest_path), manifest_path);
  if (!manifest.ok()) return manifest.problems();
  if (Problems changed = changed_files(*manifest, folder); !changed.empty()) return changed;
  CheckReport report;
  report.fixture_hash = manifest->fixture_hash;
  DumpReader reader(folder);
  for (const ManifestCase& emitted : manifest->cases) {
    const std::string& name = emitted.verified.name;
    if (!fs::is_directory(folder + "/" + name + "/got")) {
      report.not_run.push_back(name);
      continue;
    }
    const std::size_t before = reader.problems().size();
    const AttentionTensors got = read_tensors(reader, *manifest, emitted.verified, "got", request.without_lse);
    const AttentionTensors truth = read_tensors(reader, *manifest, emitted.verified, "expected", false);
    if (reader.problems().size() > before) continue;
    CheckedCase checked = judged_case(emitted, got, truth, request);
    for (int i = 0; i < kTensorCount; ++i) {
      const std::string tensor = name_of(static_cast<TensorName>(i));
      if (reader.holds_nan(name + "/got/" + tensor + ".npy") && checked.judgement.trouble.empty()) {
        const bool real = !std::isfinite(checked.judgement.tensors[static_cast<std::size_t>(i)].error.normwise);
        if (real) checked.judgement.trouble = tensor + " holds NaN in real tokens";
      }
    }
    report.cases.push_back(std::move(checked));
  }
  if (fs::is_directory(folder + "/block/got")) report.block = judged_block(reader, *manifest);
  if (!reader.problems().empty()) return reader.problems();
  if (report.cases.empty() && !report.block) {
    return Problem{"check.nothing", folder, "nothing was dumped: no case has a folder got/",
                   "Run what README.txt there asks for and save the results under CASE/got"};
  }
  return report;
}

}  // namespace cpfit::kernels
