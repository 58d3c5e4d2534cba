#include "kernels/verify/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "kernels/verify/block_run.h"
#include "kernels/verify/fixture.h"
#include "kernels/verify/manifest.h"
#include "kernels/verify/npy.h"
#include "kernels/verify/suite.h"
#include "model/quantity/hash.h"

namespace cpfit::kernels {

namespace {

using attention::MaskShape;
using attention::round_up;

/// Writes arrays below one folder and notes their hashes.
class TensorFolder {
 public:
  TensorFolder(std::string folder, std::vector<ManifestFile>& files) : folder_(std::move(folder)), files_(files) {}

  void array(const std::string& path, Number number, const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
    const std::string bytes = npy_bytes(number, shape, values);
    const Outcome<NpyArray> written = read_npy(bytes, path);
    put(path, bytes, shape, written->type);
  }
  void integers(const std::string& path, const std::vector<std::int64_t>& shape, const std::vector<std::int32_t>& values) {
    array(path, Number::kInt32, shape, {values.begin(), values.end()});
  }

 private:
  void put(const std::string& path, const std::string& bytes, const std::vector<std::int64_t>& shape, const std::string& type) {
    const std::filesystem::path full = std::filesystem::path(folder_) / path;
    std::error_code failed;
    std::filesystem::create_directories(full.parent_path(), failed);
    if (failed) throw Error("cannot make the folder '" + full.parent_path().string() + "': " + failed.message());
    write_file(full.string(), bytes);
    files_.push_back({path, sha256_hex(bytes), shape, type});
  }
  std::string folder_;
  std::vector<ManifestFile>& files_;
};

void write_layout(TensorFolder& folder, const std::string& prefix, const Case& verified) {
  const Layer layer = layer_of(verified);
  std::vector<std::int32_t> rows;
  for (std::int32_t rank = 0; rank < verified.cp; ++rank) {
    const std::vector<std::int32_t> of_rank = storage_rows(layer.queries, layer.mask, rank);
    rows.insert(rows.end(), of_rank.begin(), of_rank.end());
  }
  folder.integers(prefix + "shard_rows.npy", {verified.cp, layer.queries.tokens_per_rank()}, rows);
  if (verified.documents.empty()) return;
  std::vector<std::int32_t> real = {0}, padded = {0};
  for (const DocumentLength& length : verified.documents) {
    real.push_back(real.back() + static_cast<std::int32_t>(length.real));
    padded.push_back(padded.back() + static_cast<std::int32_t>(length.padded));
  }
  const auto count = static_cast<std::int64_t>(real.size());
  folder.integers(prefix + "cu_seqlens.npy", {count}, real);
  folder.integers(prefix + "cu_seqlens_padded.npy", {count}, padded);
}

ManifestCase write_case(TensorFolder& folder, const Case& verified, TruthShelf& shelf) {
  const std::string prefix = verified.name + "/";
  const Fixture fixture = fixture_of(verified);
  folder.array(prefix + "q.npy", verified.number, shape_of(verified, TensorName::kDq), fixture.q);
  folder.array(prefix + "k.npy", verified.number, shape_of(verified, TensorName::kDk), fixture.k);
  folder.array(prefix + "v.npy", verified.number, shape_of(verified, TensorName::kDv), fixture.v);
  folder.array(prefix + "dout.npy", verified.number, shape_of(verified, TensorName::kOut), fixture.dout);
  write_layout(folder, prefix, verified);
  const std::shared_ptr<const TruthShelf::Entry> entry = shelf.of(verified);
  const AttentionTensors truth = with_padding(verified, entry->truth);
  for (int i = 0; i < kTensorCount; ++i) {
    const auto tensor = static_cast<TensorName>(i);
    folder.array(prefix + "expected/" + name_of(tensor) + ".npy", Number::kFp64, shape_of(verified, tensor),
                 tensor_of(truth, tensor));
  }
  return {verified, entry->kernel};
}

void write_block(TensorFolder& folder, const Case& block) {
  const BlockSize size;
  const Parameters parameters = suite_parameters(size);
  const BlockTokens tokens = block_tokens(block, size);
  const std::vector<std::int64_t> shape = {block.query_tokens};
  folder.integers("block/ids.npy", shape, tokens.ids);
  folder.integers("block/labels.npy", shape, tokens.labels);
  folder.integers("block/positions.npy", shape, tokens.positions);
  write_layout(folder, "block/", block);
  const auto matrix = [&](const std::string& path, const DenseMatrix& values) {
    folder.array(path, Number::kFp64, {values.rows, values.columns}, values.values);
  };
  for (const Parameter& parameter : parameters) matrix("block/weights/" + parameter.name + ".npy", parameter.matrix);
  const BlockResult expected = unsharded_block(block, size, parameters);
  folder.array("block/expected/loss.npy", Number::kFp64, {1}, {expected.loss});
  for (const Parameter& gradient : expected.gradients) matrix("block/expected/grad." + gradient.name + ".npy", gradient.matrix);
}

std::string document_list(const Case& verified) {
  std::string text;
  for (const DocumentLength& length : verified.documents)
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", length.real, length.padded);
  return text;
}

std::string case_text(const Case& verified) {
  std::string text =
      fmt::format("{}/\n  {} stored tokens, {}, {}, scale {:.17g}\n  mask: {}\n", verified.name, verified.query_tokens,
                  heads_text(verified.heads), name_of(verified.number), verified.heads.scale, mask_in_words(verified));
  if (!verified.documents.empty()) {
    text += fmt::format(
        "  documents (real of stored): {}\n  cu_seqlens.npy sums the real lengths, cu_seqlens_padded.npy says where "
        "each is stored\n",
        document_list(verified));
  }
  text += fmt::format("  cut over cp {}: {}; shard_rows.npy[r][j] is the stored token at place j of rank r\n", verified.cp,
                      layout_text(verified));
  return text;
}

std::string readme_text(const std::vector<Case>& cases, const Case& block, const std::string& folder) {
  std::string text =
      "Attention of any implementation, to be judged by cpfit.\n\n"
      "For each folder below: load q, k, v and dout, run your attention forward and backward over the ranks with the mask "
      "given,\n"
      "and save, in storage order (the inverse of shard_rows), as numpy arrays:\n"
      "  CASE/got/out.npy [tokens][heads][d_v]      CASE/got/lse.npy [tokens][heads], natural logarithm of the sum of exp(scale "
      "* score)\n"
      "  CASE/got/dq.npy  [tokens][heads][d_qk]     CASE/got/dk.npy, CASE/got/dv.npy [tokens][kv heads][d]\n"
      "dout is the gradient of the output; it is not constant, since a constant one hides errors. Numbers may be fp64, fp32 or "
      "fp16;\n"
      "bf16 has no numpy type: upcast it to fp32 (exact), or save its 16 bits as uint16, which is how bf16 inputs are stored "
      "here\n"
      "(torch.from_numpy(x.view(numpy.int16)).view(torch.bfloat16)). Without lse: check with --without-lse.\n"
      "Padded tokens hold large numbers: nothing may attend to them, and their gradients must be 0.\n\n"
      "Then: cpfit verify check " +
      folder +
      " --framework NAME --version VERSION --method METHOD [--cp N] [--db FILE]\n"
      "Cases that were not run (no got/) are passed over.\n\n";
  for (const Case& one : cases) text += case_text(one) + "\n";
  text += fmt::format(
      "block/\n  A two-layer transformer, to be run in fp32 or fp64, that shows labels shifted on the wrong side of a seam, "
      "losses\n"
      "  averaged over ranks and gradients normalised twice. {} stored tokens in documents {}, cut over cp {}, zigzag per "
      "document.\n"
      "  x = embedding[ids]; twice: n = rms_norm(x, norm_attention); q, k, v = n @ query, n @ key, n @ value; RoPE on q and k "
      "by\n"
      "  positions (pairs (i, i + d/2), base 10000); attention, causal inside each document, {}, scale 1/sqrt(d);\n"
      "  x += attention @ output; n = rms_norm(x, norm_mlp); x += (silu(n @ gate) * (n @ up)) @ down. Then rms_norm(x, "
      "norm_final)\n"
      "  @ head, cross-entropy with labels.npy (already shifted; -1: no loss), summed over all ranks and divided once by the "
      "valid\n"
      "  tokens of all of them. rms_norm adds 1e-6 to the mean square. Weights are [in][out], in block/weights.\n"
      "  Save block/got/loss.npy (one number) and the gradient of every weight, summed over cp, as block/got/grad.NAME.npy.\n",
      block.query_tokens, document_list(block), block.cp, heads_text(block.heads));
  return text;
}

}  // namespace

std::string mask_in_words(const Case& verified) {
  switch (verified.mask) {
    case MaskShape::kFull:
      return "none: every query sees every key";
    case MaskShape::kCausal:
      return "causal: a query sees keys up to its own position";
    case MaskShape::kWindow:
      return fmt::format("sliding window: a query sees itself and the {} keys before it", verified.window - 1);
    case MaskShape::kDocuments:
      break;
  }
  return "packed documents: a query sees keys of its own document up to its own position; padding sees nothing and is seen by "
         "nobody";
}

std::vector<Case> emitted_cases(const EmitRequest& request) {
  const std::int64_t multiple = std::int64_t{2} * request.cp;
  const auto made = [&](const char* name, MaskShape mask) {
    Case one;
    one.name = name;
    one.method = methods().front().name;  // whose cut it is; what runs is somebody else's
    one.mask = mask;
    one.query_tokens = one.key_tokens = round_up(request.length, multiple);
    one.cp = request.cp;
    one.number = request.number;
    one.heads = request.heads;
    one.seed = request.seed;
    return one;
  };
  const auto packed = [&](const char* name, const std::vector<std::int64_t>& lengths) {
    Case one = made(name, MaskShape::kDocuments);
    one.per_document = true;
    one.query_tokens = 0;
    for (const std::int64_t real : lengths) {
      one.documents.push_back({real, round_up(real, multiple)});
      one.query_tokens += one.documents.back().padded;
    }
    one.key_tokens = one.query_tokens;
    one.shape = fmt::format("documents {}", document_list(one));
    return one;
  };
  const auto wanted = [&](MaskShape mask) {
    return request.masks.empty() || std::ranges::find(request.masks, mask) != request.masks.end();
  };
  std::vector<Case> cases;
  for (const auto& [name, mask] :
       {std::pair{"causal", MaskShape::kCausal}, {"full", MaskShape::kFull}, {"window", MaskShape::kWindow}}) {
    if (!wanted(mask)) continue;
    cases.push_back(made(name, mask));
    if (mask == MaskShape::kWindow) cases.back().window = request.window;
    cases.back().shape = fmt::format("{} tokens", cases.back().query_tokens);
  }
  if (wanted(MaskShape::kDocuments)) {
    std::vector<std::int64_t> lengths = {1, multiple - 1, 0, request.length / 3};
    std::int64_t rest = request.length;
    for (const std::int64_t length : lengths) rest -= length;
    if (rest > 0) lengths.push_back(rest);
    cases.push_back(packed("documents", lengths));
    cases.push_back(packed("padded_tail", {request.length}));
  }
  return cases;
}

std::vector<std::string> emit_tensors(const std::string& folder, const EmitRequest& request, const std::string& tool_version) {
  Manifest manifest;
  manifest.tool_version = tool_version;
  const std::vector<Case> cases = emitted_cases(request);
  manifest.fixture_hash = hash_of_fixtures(cases);
  TensorFolder tensors(folder, manifest.files);
  TruthShelf shelf;
  std::vector<std::string> lines;
  for (const Case& one : cases) {
    manifest.cases.push_back(write_case(tensors, one, shelf));
    lines.push_back(
        fmt::format("{}: {}, {}, {}, cut over cp {}", one.name, one.shape, heads_text(one.heads), name_of(one.number), one.cp));
  }
  manifest.block = block_case(methods().front().name, request.cp, Fault::kNone);
  write_block(tensors, manifest.block);
  lines.push_back(fmt::format("block: {}, fp64", manifest.block.shape));
  write_file(folder + "/README.txt", readme_text(cases, manifest.block, folder));
  write_file(folder + "/manifest.json", manifest_json(manifest));
  return lines;
}

}  // namespace cpfit::kernels
