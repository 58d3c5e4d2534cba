// What is read back: result databases, and tensors that another program dumped.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "db/query/runs.h"
#include "db/store/bundle_store.h"
#include "db/store/calibration_store.h"
#include "db/store/measured_job_store.h"
#include "db/store/run_store.h"
#include "db/store/timeline_store.h"
#include "db/store/validation_store.h"
#include "db/store/verification_store.h"
#include "kernels/verify/case.h"
#include "kernels/verify/check.h"
#include "kernels/verify/emit.h"
#include "kernels/verify/manifest.h"
#include "kernels/verify/npy.h"
#include "model/quantity/hash.h"
#include "model/record/bundle.h"
#include "tests/db/sample_records.h"
#include "tests/fuzz/databases.h"
#include "tests/fuzz/targets.h"

namespace cpfit::fuzz {

namespace {

/// The world's failures, a damaged file among them, are Errors; nothing else may be thrown.
template <class Work>
void tried(Work&& work) {
  try {
    work();
  } catch (const Error&) {
  }
}

void read_all(const std::string& path) {
  tried([&] {
    const Store store = open_store(path, {.access = StoreAccess::kRead, .patience = std::chrono::milliseconds(0)});
    std::vector<RunId> runs{RunId{1}, RunId{2}};
    tried([&] {
      for (const RunSummary& run : list_runs(store)) runs.push_back(run.run);
    });
    runs.resize(std::min<std::size_t>(runs.size(), 8));
    for (const RunId run : runs) {
      tried([&] { (void)load_run(store, run); });
      CandidateQuery query;
      query.order = CandidateOrder::kStepSeconds;
      tried([&] { (void)candidates_of(store, run, query); });
    }
    tried([&] {
      for (const ValidationListing& one : list_validations(store)) (void)load_validation(store, one.id);
    });
    tried([&] {
      for (const VerificationListing& one : list_verifications(store)) (void)load_verification(store, one.id);
    });
    tried([&] { (void)proofs_of(store); });
    tried([&] {
      for (const MeasuredJobListing& one : list_measured_jobs(store)) (void)load_measured_job(store, one.id);
    });
    tried([&] {
      for (const BundleListing& one : list_bundles(store)) (void)one;
      (void)load_bundle(store, "aaaaaaaa");
    });
    tried([&] {
      for (const TimelineListing& one : list_timelines(store)) (void)load_timeline(store, one.id);
    });
    tried([&] {
      for (const Calibration& one : list_calibrations(store)) (void)tables_of(one);
      (void)find_calibration(store, "node");
    });
    tried([&] { (void)find_resumable(store, sample::provenance()); });
  });
}

void open_for_writing(const std::string& path) {
  tried([&] {
    Store store = open_store(path, {.access = StoreAccess::kWrite, .patience = std::chrono::milliseconds(0)});
    (void)create_run(store, sample::provenance());
  });
}

constexpr std::size_t kHashLetters = 64;

/// Tensors of one small case, with the results that were expected standing for somebody's own. Made once.
const std::string& tensor_folder() {
  static const sample::TemporaryFolder folder;
  static const std::string path = [] {
    kernels::EmitRequest request;
    request.masks = {attention::MaskShape::kCausal};
    request.length = 16;
    request.cp = 2;
    request.heads = {2, 1, 8, 8, 0.125};
    (void)kernels::emit_tensors(folder.path().string(), request, "1");
    std::filesystem::copy(folder.path() / "causal/expected", folder.path() / "causal/got");
    std::filesystem::create_directories(folder.path() / "block/got");
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "block/expected"))
      std::filesystem::copy(entry.path(), folder.path() / "block/got" / entry.path().filename());
    return folder.path().string();
  }();
  return path;
}

/// A manifest whose own hash fits, whatever else it says: whoever changes one can do that too.
std::string sealed(std::string_view bytes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(bytes, nullptr, false);
  if (!json.is_object()) return std::string(bytes);
  json.erase("manifest_sha256");
  json["manifest_sha256"] = sha256_hex(json.dump());
  return json.dump();
}

}  // namespace

void database(std::string_view bytes) {
  const TemporaryFile file(changed_database(result_database(), bytes));
  read_all(file.path());
  open_for_writing(file.path());
}

void database_cells(std::string_view bytes) {
  static const std::string loose = loosened(result_database());
  const TemporaryFile file(with_changed_cells(loose, bytes));
  read_all(file.path());
}

/// First byte: 0 a manifest, 1 the same with its hash made right, 2 a case of the suite, else a dumped array.
void tensors(std::string_view bytes) {
  if (bytes.empty()) return;
  const std::string text(bytes.substr(1));
  const unsigned kind = static_cast<unsigned char>(bytes.front()) % 8;
  const std::string& folder = tensor_folder();
  if (kind == 2) {
    (void)kernels::parse_cases(text);
    return;
  }
  if (kind < 2) {
    static const std::string whole = kernels::read_whole_file(folder + "/manifest.json");
    kernels::write_file(folder + "/manifest.json", kind == 0 ? text : sealed(text));
    for (const bool without_lse : {false, true})
      tried([&] { (void)kernels::check_tensors(folder, {.accumulation = {}, .cp = 0, .without_lse = without_lse}); });
    kernels::write_file(folder + "/manifest.json", whole);
    return;
  }
  const std::string path = folder + (kind % 2 == 0 ? "/causal/got/dq.npy" : "/block/got/loss.npy");
  static const std::string dq = kernels::read_whole_file(folder + "/causal/got/dq.npy");
  static const std::string loss = kernels::read_whole_file(folder + "/block/got/loss.npy");
  kernels::write_file(path, text);
  tried([&] { (void)kernels::check_tensors(folder, {}); });
  kernels::write_file(path, kind % 2 == 0 ? dq : loss);
}

/// The bytes, and the bytes with their hash made right: whoever changes a bundle can do that too.
void bundle(std::string_view bytes) {
  constexpr std::string_view kKey = "\"sha256\": \"";
  std::string text(bytes);
  (void)parse_bundle(text, "b.json");
  const std::size_t place = text.find(kKey);
  if (place == std::string::npos || place + kKey.size() + kHashLetters > text.size()) return;
  text.replace(place + kKey.size(), kHashLetters, kHashLetters, '0');
  text.replace(place + kKey.size(), kHashLetters, sha256_hex(text));
  const Outcome<Bundle> read = parse_bundle(text, "b.json");
  must(read.ok() != !read.problems().empty(), "a bundle or problems");
  if (!read.ok()) return;
  const Outcome<Bundle> again = parse_bundle(bundle_text(*read), "again.json");
  must(again.ok() && *again == *read, "a bundle comes back from its text");
}

std::vector<std::string> tensor_seeds() {
  const std::string manifest = kernels::read_whole_file(tensor_folder() + "/manifest.json");
  kernels::Case one;
  one.name = one.method = "te_p2p";
  one.query_tokens = one.key_tokens = 16;
  one.cp = 2;
  return {std::string(1, '\0') + manifest, "\1" + manifest, "\2" + kernels::case_json(one)};
}

std::vector<std::string> bundle_seeds() {
  Bundle made;
  made.tool_version = "1";
  made.scenario = {"s.toml", "name = \"s\"\n"};
  made.model = {{"layers", "32"}};
  made.topology = {"gpu0 -> nvswitch0: 450 GB/s"};
  made.inputs = {{"s.toml", std::string(kHashLetters, 'a')}};
  made.mesh = {{0, 0, 0, 0, 0, 0, 0}, {1, 0, 1, 0, 0, 0, 1}};
  made.predicted = {"ship", "tp=1,cp=2,pp=1,dp=1", 2, "fits", "a sentence", {}};
  made.controls = {{"slow", "tp=1,cp=4,pp=1,dp=1", 4, "fits", "longer", {}}};
  made.missing_controls = {{"out_of_memory", "all fit"}};
  made.links = {{"gpu0", "gpu1", Bytes(1e9), Seconds(0.5)}};
  made.equivalence.sentence = "nothing was proved";
  made.equivalence.cases = {{"te_p2p | causal", 7, std::string(kHashLetters, 'b'), false, false, {}}};
  return {bundle_text(made)};
}

}  // namespace cpfit::fuzz
