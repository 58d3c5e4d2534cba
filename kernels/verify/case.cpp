#include "kernels/verify/case.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace cpfit::kernels {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kMaskNames = {"full", "causal", "window", "documents"};
constexpr std::array<std::string_view, 3> kLayoutNames = {"zigzag", "contiguous", "striped"};
constexpr std::array<std::string_view, 4> kNumberNames = {"fp64", "fp32", "bf16", "fp16"};
constexpr std::array<std::string_view, 12> kFaultNames = {"none",
                                                          "seam_off_by_one",
                                                          "mask_shifted_by_block",
                                                          "permutation_not_inverted",
                                                          "merge_through_exp",
                                                          "dkv_one_hop_short",
                                                          "kv_of_step_zero",
                                                          "length_floored",
                                                          "padded_key_attended",
                                                          "gradient_divided_by_cp",
                                                          "labels_shifted_after_shard",
                                                          "loss_mean_of_means"};
constexpr std::array<std::string_view, 12> kFaultMeanings = {"",
                                                             "a position at a shard seam is one too low",
                                                             "a ring step uses the mask of its neighbouring step",
                                                             "results stay in the order of the shards",
                                                             "partial results are merged by adding exp(lse)",
                                                             "the gradients of K and V stop one hop before their owner",
                                                             "backward reads on every step the K and V of step 0",
                                                             "the real length is rounded down to a multiple of cp",
                                                             "queries attend to a padded key",
                                                             "the gradient of the weights is divided by cp once too often",
                                                             "labels are shifted after the sequence was cut",
                                                             "the loss is the mean of the ranks' means"};

Problem wrong(const std::string& key, const std::string& message) {
  return {"case.value", key, message, "Write cases as cpfit hands them out: one JSON object a line"};
}

/// Reads typed values out of one object and keeps the first thing that is wrong.
class CaseReader {
 public:
  explicit CaseReader(const Json& object) : object_(object) {}
  [[nodiscard]] const Problems& problems() const { return problems_; }

  std::string text(const char* key) {
    const Json* value = find(key);
    if (value == nullptr || !value->is_string()) return fail(key, "must be a text"), std::string();
    return value->get<std::string>();
  }
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high) { return integer(find(key), key, low, high); }
  std::int64_t integer(const Json* value, const char* key, std::int64_t low, std::int64_t high) {
    if (value == nullptr || !value->is_number_integer()) return fail(key, "must be a whole number"), low;
    const auto number = value->get<std::int64_t>();
    if (number < low || number > high)
      return fail(key, "must lie between " + std::to_string(low) + " and " + std::to_string(high)), low;
    return number;
  }
  std::uint64_t seed(const char* key) {
    const Json* value = find(key);
    if (value == nullptr || !value->is_number_unsigned()) return fail(key, "must be a whole number from 0"), 0;
    return value->get<std::uint64_t>();
  }
  double real(const char* key) {
    const Json* value = find(key);
    if (value == nullptr || !value->is_number()) return fail(key, "must be a number"), 0.0;
    return value->get<double>();
  }
  bool flag(const char* key) {
    const Json* value = find(key);
    if (value == nullptr || !value->is_boolean()) return fail(key, "must be true or false"), false;
    return value->get<bool>();
  }
  template <class Enumeration, std::size_t count>
  Enumeration named(const char* key, const std::array<std::string_view, count>& names) {
    const std::string word = text(key);
    const auto found = std::ranges::find(names, word);
    if (found != names.end()) return static_cast<Enumeration>(found - names.begin());
    if (problems_.empty()) fail(key, "does not know '" + word + "'");
    return Enumeration{};
  }
  const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  void fail(const std::string& key, const std::string& message) {
    if (problems_.empty()) problems_.push_back(wrong(key, key + " " + message));
  }

 private:
  const Json& object_;
  Problems problems_;
};

constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;
constexpr std::int64_t kMostHeads = 1 << 12;

void read_lengths(CaseReader& reader, Case& read) {
  const Json* documents = reader.find("documents");
  if (documents == nullptr || !documents->is_array()) return reader.fail("documents", "must be a list of [real, padded]");
  for (const Json& entry : *documents) {
    if (!entry.is_array() || entry.size() != 2) return reader.fail("documents", "must be a list of [real, padded]");
    DocumentLength length;
    length.padded = reader.integer(&entry[1], "documents", 0, kMostTokens);
    length.real = reader.integer(&entry[0], "documents", 0, length.padded);
    read.documents.push_back(length);
  }
  std::int64_t stored = 0;
  for (const DocumentLength& length : read.documents) stored += length.padded;
  const bool documents_wanted = read.mask == attention::MaskShape::kDocuments;
  if (documents_wanted != !read.documents.empty())
    return reader.fail("documents", "belongs to the mask 'documents' and only to it");
  if (documents_wanted && (stored != read.query_tokens || stored != read.key_tokens))
    reader.fail("documents", "must add up to query_tokens and key_tokens");
}

}  // namespace

std::string_view name_of(attention::MaskShape mask) { return kMaskNames[static_cast<std::size_t>(mask)]; }
std::string_view name_of(attention::Layout layout) { return kLayoutNames[static_cast<std::size_t>(layout)]; }
std::string_view name_of(Fault fault) { return kFaultNames[static_cast<std::size_t>(fault)]; }
std::string_view meaning_of(Fault fault) { return kFaultMeanings[static_cast<std::size_t>(fault)]; }

const std::vector<Fault>& planted_faults() {
  static const std::vector<Fault> kAll = [] {
    std::vector<Fault> all;
    for (std::size_t i = 1; i < kFaultNames.size(); ++i) all.push_back(static_cast<Fault>(i));
    return all;
  }();
  return kAll;
}

Mask mask_of(const Case& verified) {
  Mask mask{verified.mask, verified.window, {}};
  std::int64_t start = 0;
  for (const DocumentLength& length : verified.documents) {
    mask.documents.push_back({start, length.real, length.padded});
    start += length.padded;
  }
  return mask;
}

Layer layer_of(const Case& verified) {
  Layer layer;
  layer.heads = verified.heads;
  layer.mask = mask_of(verified);
  layer.queries = {verified.layout, verified.per_document, verified.query_tokens, verified.cp};
  layer.keys = {verified.layout, verified.per_document, verified.key_tokens, verified.cp};
  layer.number = verified.number;
  return layer;
}

Outcome<Method> method_of(const Case& verified) {
  std::vector<std::string> names;
  for (const Method& method : methods()) {
    names.push_back(method.name);
    if (method.name != verified.method) continue;
    Method found = method;
    if (verified.inner > 0) {
      if (found.exchange == Exchange::kAllToAllRing) found.a2a_degree = verified.inner;
      if (found.exchange == Exchange::kDoubleRing) found.window = verified.inner;
    }
    found.fault = verified.fault;
    return found;
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  const std::string meant = nearest_name(verified.method, names);
  return Problem{"case.method", "method", "there is no method '" + verified.method + "'",
                 meant.empty() ? "The methods are " + list : "Did you mean '" + meant + "'? The methods are " + list};
}

std::string case_json(const Case& verified) {
  Json json;
  json["name"] = verified.name;
  json["method"] = verified.method;
  json["shape"] = verified.shape;
  json["mask"] = name_of(verified.mask);
  json["window"] = verified.window;
  json["documents"] = Json::array();
  for (const DocumentLength& length : verified.documents) json["documents"].push_back({length.real, length.padded});
  json["query_tokens"] = verified.query_tokens;
  json["key_tokens"] = verified.key_tokens;
  json["layout"] = name_of(verified.layout);
  json["per_document"] = verified.per_document;
  json["cp"] = verified.cp;
  json["inner"] = verified.inner;
  json["number"] = name_of(verified.number);
  json["heads"] = verified.heads.q;
  json["kv_heads"] = verified.heads.kv;
  json["qk_dim"] = verified.heads.qk_dim;
  json["v_dim"] = verified.heads.v_dim;
  json["scale"] = verified.heads.scale;
  json["seed"] = verified.seed;
  json["fault"] = name_of(verified.fault);
  return json.dump();
}

Outcome<Case> parse_case(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return wrong("case", "this is no JSON object: " + std::string(text.substr(0, 60)));
  CaseReader reader(json);
  Case read;
  read.name = reader.text("name");
  read.method = reader.text("method");
  read.shape = reader.text("shape");
  read.mask = reader.named<attention::MaskShape>("mask", kMaskNames);
  read.window = reader.integer("window", 0, kMostTokens);
  read.query_tokens = reader.integer("query_tokens", 0, kMostTokens);
  read.key_tokens = reader.integer("key_tokens", 0, kMostTokens);
  read_lengths(reader, read);
  read.layout = reader.named<attention::Layout>("layout", kLayoutNames);
  read.per_document = reader.flag("per_document");
  read.cp = static_cast<std::int32_t>(reader.integer("cp", 1, 1 << 12));
  read.inner = static_cast<std::int32_t>(reader.integer("inner", 0, 1 << 12));
  read.number = reader.named<Number>("number", kNumberNames);
  read.heads.q = static_cast<std::int32_t>(reader.integer("heads", 1, kMostHeads));
  read.heads.kv = static_cast<std::int32_t>(reader.integer("kv_heads", 1, kMostHeads));
  read.heads.qk_dim = static_cast<std::int32_t>(reader.integer("qk_dim", 1, kMostHeads));
  read.heads.v_dim = static_cast<std::int32_t>(reader.integer("v_dim", 1, kMostHeads));
  read.heads.scale = reader.real("scale");
  read.seed = reader.seed("seed");
  read.fault = reader.named<Fault>("fault", kFaultNames);
  if (read.heads.q % read.heads.kv != 0) reader.fail("kv_heads", "must divide heads");
  if (read.mask == attention::MaskShape::kWindow && read.window == 0) reader.fail("window", "must be at least 1");
  if (!reader.problems().empty()) return reader.problems();
  return read;
}

Outcome<std::vector<Case>> parse_cases(std::string_view lines) {
  std::vector<Case> cases;
  for (std::size_t line = 1; !lines.empty(); ++line) {
    const std::size_t end = lines.find('\n');
    const std::string_view text = lines.substr(0, end);
    lines = end == std::string_view::npos ? std::string_view() : lines.substr(end + 1);
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Outcome<Case> read = parse_case(text);
    if (!read.ok()) {
      Problems problems = read.problems();
      for (Problem& problem : problems) problem.where = "line " + std::to_string(line) + ": " + problem.where;
      return problems;
    }
    cases.push_back(std::move(read).value());
  }
  return cases;
}

}  // namespace cpfit::kernels
