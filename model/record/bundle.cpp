#include "model/record/bundle.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/quantity/hash.h"
#include "model/quantity/text_file.h"

namespace cpfit {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHashKey = "\"sha256\": \"";
constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kHashWithin = 512;  // bytes from the start of the file

// ---- Writing ----

std::string dumped(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Indented, but a list of numbers, or a short one, stays on one line: a rank is a line.
void print(const Json& value, const std::string& indent, std::string& out) {
  constexpr std::size_t kShort = 130;
  const auto plain = [&] {
    if (!value.is_array() || std::ranges::any_of(value, [](const Json& item) { return item.is_structured(); })) return false;
    return std::ranges::none_of(value, [](const Json& item) { return item.is_string(); }) || dumped(value).size() <= kShort;
  };
  if (!value.is_structured() || value.empty() || plain()) {
    out += dumped(value);
    return;
  }
  const std::string inner = indent + " ";
  out += value.is_object() ? "{\n" : "[\n";
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!first) out += ",\n";
    first = false;
    out += inner;
    if (value.is_object()) out += dumped(Json(key)) + ": ";
    print(item, inner, out);
  }
  out += "\n" + indent + (value.is_object() ? "}" : "]");
}

Json lines_json(const std::string& text) {
  Json lines = Json::array();
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    if (end == std::string::npos) return lines;
    at = end + 1;
  }
}

Json named_json(const NamedTexts& texts) {
  Json rows = Json::array();  // names may come twice in a hostile file: a list keeps what an object would lose
  for (const auto& [name, value] : texts) rows.push_back(Json::array({name, value}));
  return rows;
}

Json figures_json(const std::vector<Figure>& figures) {
  Json json = Json::object();
  for (const Figure& figure : figures) json[figure.name] = figure.value;
  return json;
}

Json recipe_json(const BundledRecipe& recipe) {
  return {{"role", recipe.role}, {"recipe", recipe.recipe},     {"gpus", recipe.gpus},
          {"fits", recipe.fits}, {"sentence", recipe.sentence}, {"figures", figures_json(recipe.figures)}};
}

Json equivalence_json(const BundledEquivalence& equivalence) {
  Json proofs = Json::array(), cases = Json::array();
  for (const AttentionProof& proof : equivalence.proofs) {
    proofs.push_back({{"implementation", proof.implementation},
                      {"implementation_version", proof.implementation_version},
                      {"backend", proof.backend},
                      {"method", proof.method},
                      {"mask", proof.mask},
                      {"layout", proof.layout},
                      {"dtype", proof.dtype},
                      {"cp", proof.cp},
                      {"fixture_sha256", proof.fixture_hash},
                      {"stored_unix_seconds", proof.unix_seconds}});
  }
  for (const BundledCase& one : equivalence.cases) {
    cases.push_back({{"case", one.name},
                     {"seed", one.seed},
                     {"fixture_sha256", one.fixture},
                     {"run", one.run},
                     {"passed", one.passed},
                     {"normwise_errors", figures_json(one.errors)}});
  }
  return {{"sentence", equivalence.sentence},
          {"method", equivalence.method},
          {"layout", equivalence.layout},
          {"dtype", equivalence.dtype},
          {"masks", equivalence.masks},
          {"proofs", proofs},
          {"cases", cases}};
}

/// The parts of a file, each hashed by itself as well, so that one can say which was changed.
Json parts_of(const Bundle& bundle) {
  Json files = Json::array(), ranks = Json::array(), controls = Json::array(), links = Json::array();
  for (const BundledFile& file : bundle.files)
    files.push_back({{"path", file.path}, {"sha256", sha256_hex(file.text)}, {"lines", lines_json(file.text)}});
  for (const BundledRank& rank : bundle.mesh)
    ranks.push_back(Json::array({rank.rank, rank.tp, rank.cp, rank.dp, rank.pp, rank.node, rank.gpu}));
  for (const BundledRecipe& control : bundle.controls) controls.push_back(recipe_json(control));
  for (const LinkLoad& link : bundle.links)
    links.push_back({{"from", link.from}, {"to", link.to}, {"bytes", link.bytes.value()}, {"busy_seconds", link.busy.value()}});
  Json parts;
  parts["predicted"] = recipe_json(bundle.predicted);
  parts["links"] = links;
  parts["controls"] = controls;
  parts["missing_controls"] = named_json(bundle.missing_controls);
  parts["equivalence"] = equivalence_json(bundle.equivalence);
  parts["model"] = named_json(bundle.model);
  parts["sequence"] = named_json(bundle.sequence);
  parts["implementation"] = named_json(bundle.implementation);
  parts["software"] = named_json(bundle.software);
  parts["cluster"] = named_json(bundle.cluster);
  parts["topology"] = bundle.topology;
  parts["scenario"] = {
      {"name", bundle.scenario_name}, {"path", bundle.scenario.path}, {"lines", lines_json(bundle.scenario.text)}};
  parts["files"] = files;
  parts["inputs_sha256"] = named_json(bundle.inputs);
  parts["preset_entries"] = named_json(bundle.entries);
  parts["calibration"] = {{"name", bundle.calibration_name},
                          {"id", bundle.calibration_id},
                          {"rates_version", bundle.rates_version},
                          {"lines", lines_json(bundle.calibration)}};
  parts["mesh"] = {
      {"placement", bundle.placement}, {"columns", {"rank", "tp", "cp", "dp", "pp", "node", "gpu"}}, {"ranks", ranks}};
  return parts;
}

/// Where the hash's digits begin; npos: nowhere.
std::size_t hash_place(const std::string& text) {
  const std::size_t key = text.find(kHashKey);
  if (key > kHashWithin) return std::string::npos;  // or nowhere at all
  const std::size_t begin = key + kHashKey.size();
  return begin + kHashDigits < text.size() && text[begin + kHashDigits] == '"' ? begin : std::string::npos;
}

std::string hash_of(std::string text, std::size_t place) {
  text.replace(place, kHashDigits, kHashDigits, '0');
  return sha256_hex(text);
}

// ---- Reading: every value is checked where it stands; the first thing wrong ends it. ----

struct Wrong {
  std::string where, message;
};

const Json& member(const Json& object, const char* key, const std::string& where) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) throw Wrong{where + "." + key, "is missing"};
  return *found;
}

std::string text_in(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_string()) throw Wrong{where + "." + key, "is no text"};
  return value.get<std::string>();
}

std::int64_t whole(const Json& value, const std::string& where) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > (std::uint64_t{1} << 62)))
    throw Wrong{where, "is no whole number"};
  return value.get<std::int64_t>();
}

std::int64_t whole_in(const Json& object, const char* key, const std::string& where) {
  return whole(member(object, key, where), where + "." + key);
}

std::int32_t degree(const Json& value, const std::string& where) {
  const std::int64_t number = whole(value, where);
  if (number < 0 || number > kMaxDegree) throw Wrong{where, "is out of range"};
  return static_cast<std::int32_t>(number);
}

double real(const Json& value, const std::string& where) {
  if (!value.is_number()) throw Wrong{where, "is no number"};
  return value.get<double>();
}

bool flag_in(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_boolean()) throw Wrong{where + "." + key, "is neither true nor false"};
  return value.get<bool>();
}

const Json& list_in(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_array()) throw Wrong{where + "." + key, "is no list"};
  return value;
}

std::vector<std::string> texts_in(const Json& object, const char* key, const std::string& where) {
  std::vector<std::string> texts;
  for (const Json& item : list_in(object, key, where)) {
    if (!item.is_string()) throw Wrong{where + "." + key, "holds something that is no text"};
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::string lines_in(const Json& object, const std::string& where) {
  std::string text;
  bool first = true;
  for (const std::string& line : texts_in(object, "lines", where)) {
    text += (first ? "" : "\n") + line;
    first = false;
  }
  return text;
}

NamedTexts named_in(const Json& object, const char* key, const std::string& where) {
  NamedTexts texts;
  for (const Json& row : list_in(object, key, where)) {
    if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_string())
      throw Wrong{where + "." + key, "holds something that is no name with a text"};
    texts.emplace_back(row[0].get<std::string>(), row[1].get<std::string>());
  }
  return texts;
}

std::vector<Figure> figures_in(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_object()) throw Wrong{where + "." + key, "is no object"};
  std::vector<Figure> figures;
  for (const auto& [name, number] : value.items()) figures.push_back({name, real(number, where + "." + key + "." + name)});
  return figures;
}

BundledRecipe read_recipe(const Json& json, const std::string& where) {
  BundledRecipe recipe;
  recipe.role = text_in(json, "role", where);
  recipe.recipe = text_in(json, "recipe", where);
  recipe.gpus = whole_in(json, "gpus", where);
  recipe.fits = text_in(json, "fits", where);
  recipe.sentence = text_in(json, "sentence", where);
  recipe.figures = figures_in(json, "figures", where);
  return recipe;
}

BundledEquivalence read_equivalence(const Json& json, const std::string& where) {
  BundledEquivalence read;
  read.sentence = text_in(json, "sentence", where);
  read.method = text_in(json, "method", where);
  read.layout = text_in(json, "layout", where);
  read.dtype = text_in(json, "dtype", where);
  read.masks = texts_in(json, "masks", where);
  for (const Json& row : list_in(json, "proofs", where)) {
    const std::string at = where + ".proofs";
    AttentionProof proof;
    proof.implementation = text_in(row, "implementation", at);
    proof.implementation_version = text_in(row, "implementation_version", at);
    proof.backend = text_in(row, "backend", at);
    proof.method = text_in(row, "method", at);
    proof.mask = text_in(row, "mask", at);
    proof.layout = text_in(row, "layout", at);
    proof.dtype = text_in(row, "dtype", at);
    for (const Json& cp : list_in(row, "cp", at)) proof.cp.push_back(degree(cp, at + ".cp"));
    proof.fixture_hash = text_in(row, "fixture_sha256", at);
    proof.unix_seconds = whole_in(row, "stored_unix_seconds", at);
    read.proofs.push_back(std::move(proof));
  }
  for (const Json& row : list_in(json, "cases", where)) {
    const std::string at = where + ".cases";
    BundledCase one;
    one.name = text_in(row, "case", at);
    one.seed = static_cast<std::uint64_t>(whole_in(row, "seed", at));
    one.fixture = text_in(row, "fixture_sha256", at);
    one.run = flag_in(row, "run", at);
    one.passed = flag_in(row, "passed", at);
    one.errors = figures_in(row, "normwise_errors", at);
    read.cases.push_back(std::move(one));
  }
  return read;
}

Bundle read_parts(const Json& parts) {
  Bundle bundle;
  bundle.predicted = read_recipe(member(parts, "predicted", "parts"), "predicted");
  for (const Json& row : list_in(parts, "links", "parts")) {
    bundle.links.push_back({text_in(row, "from", "links"), text_in(row, "to", "links"),
                            Bytes(real(member(row, "bytes", "links"), "links.bytes")),
                            Seconds(real(member(row, "busy_seconds", "links"), "links.busy_seconds"))});
  }
  for (const Json& row : list_in(parts, "controls", "parts")) bundle.controls.push_back(read_recipe(row, "controls"));
  bundle.missing_controls = named_in(parts, "missing_controls", "parts");
  bundle.equivalence = read_equivalence(member(parts, "equivalence", "parts"), "equivalence");
  bundle.model = named_in(parts, "model", "parts");
  bundle.sequence = named_in(parts, "sequence", "parts");
  bundle.implementation = named_in(parts, "implementation", "parts");
  bundle.software = named_in(parts, "software", "parts");
  bundle.cluster = named_in(parts, "cluster", "parts");
  bundle.topology = texts_in(parts, "topology", "parts");
  const Json& scenario = member(parts, "scenario", "parts");
  bundle.scenario_name = text_in(scenario, "name", "scenario");
  bundle.scenario = {text_in(scenario, "path", "scenario"), lines_in(scenario, "scenario")};
  for (const Json& row : list_in(parts, "files", "parts")) {
    BundledFile file{text_in(row, "path", "files"), lines_in(row, "files")};
    if (sha256_hex(file.text) != text_in(row, "sha256", "files")) throw Wrong{"files." + file.path, "is not what its hash says"};
    bundle.files.push_back(std::move(file));
  }
  bundle.inputs = named_in(parts, "inputs_sha256", "parts");
  bundle.entries = named_in(parts, "preset_entries", "parts");
  const Json& calibration = member(parts, "calibration", "parts");
  bundle.calibration_name = text_in(calibration, "name", "calibration");
  bundle.calibration_id = text_in(calibration, "id", "calibration");
  bundle.rates_version = text_in(calibration, "rates_version", "calibration");
  bundle.calibration = lines_in(calibration, "calibration");
  const Json& mesh = member(parts, "mesh", "parts");
  bundle.placement = text_in(mesh, "placement", "mesh");
  const Json& ranks = list_in(mesh, "ranks", "mesh");
  if (ranks.size() > static_cast<std::size_t>(kMaxBundledRanks)) throw Wrong{"mesh.ranks", "holds too many ranks"};
  for (const Json& row : ranks) {
    if (!row.is_array() || row.size() != 7) throw Wrong{"mesh.ranks", "holds something that is no rank with its six places"};
    const std::string at = "mesh.ranks";
    bundle.mesh.push_back({whole(row[0], at), degree(row[1], at), degree(row[2], at), degree(row[3], at), degree(row[4], at),
                           whole(row[5], at), degree(row[6], at)});
  }
  return bundle;
}

/// "mesh, predicted": the parts whose own hashes do not fit; empty where that cannot be told.
std::string changed_parts(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  std::string changed;
  if (!json.is_object() || !json.contains("parts_sha256") || !json.contains("parts")) return changed;
  const Json &hashes = json["parts_sha256"], &parts = json["parts"];
  if (!hashes.is_object() || !parts.is_object()) return changed;
  for (const auto& [name, part] : parts.items()) {
    if (!hashes.contains(name) || hashes[name] != Json(sha256_hex(dumped(part)))) changed += (changed.empty() ? "" : ", ") + name;
  }
  return changed;
}

constexpr const char* kRepair = "take the file from where it was exported, byte for byte, or export it again: cpfit runs export";

}  // namespace

std::string bundle_text(const Bundle& bundle) {
  const Json parts = parts_of(bundle);
  Json hashes = Json::object();
  for (const auto& [name, part] : parts.items()) hashes[name] = sha256_hex(dumped(part));
  const Json file = {{"cpfit_bundle", kBundleVersion},
                     {"sha256", std::string(kHashDigits, '0')},
                     {"tool_version", bundle.tool_version},
                     {"parts", parts},
                     {"parts_sha256", hashes}};
  std::string text;
  print(file, "", text);
  text += "\n";
  const std::size_t place = hash_place(text);
  return text.replace(place, kHashDigits, hash_of(text, place));
}

std::string bundle_id(const std::string& text) {
  const std::size_t place = hash_place(text);
  return place == std::string::npos ? std::string() : text.substr(place, kHashDigits);
}

Outcome<Bundle> parse_bundle(const std::string& text, const std::string& where) {
  if (json_nesting(text) > kMostNesting) return Problem{"bundle.syntax", where, "it is nested deeper than any bundle", kRepair};
  // The bytes first: what follows then reads only what an export wrote, or what somebody hashed on purpose.
  const std::size_t place = hash_place(text);
  if (place == std::string::npos)
    return Problem{"bundle.foreign", where, "this is no recipe bundle: it does not begin with a bundle's version and hash",
                   "give a file of `cpfit runs export`"};
  const std::string stated = text.substr(place, kHashDigits), found = hash_of(text, place);
  if (stated != found) {
    const std::string parts = changed_parts(text);
    return Problem{"bundle.changed", where,
                   "its bytes were changed since it was exported: SHA-256 " + found.substr(0, 12) + ", its own is " +
                       stated.substr(0, 12) + (parts.empty() ? "" : "; what differs: " + parts),
                   kRepair};
  }
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Problem{"bundle.syntax", where, "this is no JSON", kRepair};
  try {
    const std::int64_t version = whole_in(json, "cpfit_bundle", "bundle");
    if (version > kBundleVersion) {
      return Problem{"bundle.newer", where,
                     "it has format version " + std::to_string(version) + ", this cpfit knows " + std::to_string(kBundleVersion),
                     "update cpfit"};
    }
    if (version < 1) throw Wrong{"cpfit_bundle", "is no version"};
    Bundle bundle = read_parts(member(json, "parts", "bundle"));
    bundle.tool_version = text_in(json, "tool_version", "bundle");
    return bundle;
  } catch (const Wrong& wrong) {
    return Problem{"bundle.content", where, "'" + wrong.where + "' " + wrong.message, kRepair};
  }
}

}  // namespace cpfit
