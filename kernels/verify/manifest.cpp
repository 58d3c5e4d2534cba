#include "kernels/verify/manifest.h"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "kernels/verify/npy.h"
#include "model/quantity/hash.h"
#include "model/quantity/text_file.h"

namespace cpfit::kernels {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "cpfit-verify/1";
constexpr const char* kOwnHash = "manifest_sha256";

Json kernel_json(const std::array<ErrorFigures, kTensorCount>& kernel) {
  Json json;
  for (int i = 0; i < kTensorCount; ++i) {
    const ErrorFigures& error = kernel[static_cast<std::size_t>(i)];
    json[name_of(static_cast<TensorName>(i))] = {{"normwise", error.normwise}, {"largest", error.largest}};
  }
  return json;
}

/// Throws what nlohmann throws when something is absent or of another type.
Manifest read_body(const Json& json, Problems& problems) {
  Manifest manifest;
  manifest.tool_version = json.at("tool_version");
  manifest.fixture_hash = json.at("fixture_hash");
  const auto read_case = [&](const Json& from) {
    Outcome<Case> read = parse_case(from.dump());
    if (read.ok()) return *read;
    problems.insert(problems.end(), read.problems().begin(), read.problems().end());
    return Case{};
  };
  for (const Json& entry : json.at("cases")) {
    ManifestCase one;
    one.verified = read_case(entry.at("case"));
    for (int i = 0; i < kTensorCount; ++i) {
      const Json& error = entry.at("kernel_errors").at(name_of(static_cast<TensorName>(i)));
      one.kernel[static_cast<std::size_t>(i)] = {error.at("normwise"), error.at("largest")};
    }
    manifest.cases.push_back(std::move(one));
  }
  manifest.block = read_case(json.at("block"));
  for (const Json& entry : json.at("files")) {
    manifest.files.push_back({entry.at("path"), entry.at("sha256"), entry.at("shape"), entry.at("type")});
  }
  return manifest;
}

}  // namespace

std::vector<std::int64_t> shape_of(const Case& verified, TensorName tensor) {
  const Heads& heads = verified.heads;
  switch (tensor) {
    case TensorName::kOut:
      return {verified.query_tokens, heads.q, heads.v_dim};
    case TensorName::kLse:
      return {verified.query_tokens, heads.q};
    case TensorName::kDq:
      return {verified.query_tokens, heads.q, heads.qk_dim};
    case TensorName::kDk:
      return {verified.key_tokens, heads.kv, heads.qk_dim};
    case TensorName::kDv:
      return {verified.key_tokens, heads.kv, heads.v_dim};
  }
  return {};
}

std::string manifest_json(const Manifest& manifest) {
  Json json;
  json["schema"] = kSchema;
  json["tool_version"] = manifest.tool_version;
  json["fixture_hash"] = manifest.fixture_hash;
  json["cases"] = Json::array();
  for (const ManifestCase& one : manifest.cases) {
    json["cases"].push_back({{"folder", one.verified.name},
                             {"case", Json::parse(case_json(one.verified))},
                             {"kernel_errors", kernel_json(one.kernel)}});
  }
  json["block"] = Json::parse(case_json(manifest.block));
  json["files"] = Json::array();
  for (const ManifestFile& file : manifest.files) {
    json["files"].push_back({{"path", file.path}, {"sha256", file.sha256}, {"shape", file.shape}, {"type", file.type}});
  }
  const std::string own = sha256_hex(json.dump());
  json[kOwnHash] = own;
  return json.dump(1) + "\n";
}

Outcome<Manifest> parse_manifest(const std::string& text, const std::string& where) {
  const auto unreadable = [&](const std::string& message) {
    return Problem{"manifest.format", where, message, "Take a folder that `cpfit verify emit` wrote"};
  };
  Json json = json_nesting(text) > kMostNesting ? Json() : Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("schema", Json()) != kSchema) return unreadable("this is no manifest of cpfit verify emit");
  const Json own = json.value(kOwnHash, Json());
  json.erase(kOwnHash);
  if (Json(sha256_hex(json.dump())) != own) {
    return Problem{"manifest.changed", where, "the manifest was changed after it was written: its hash is another",
                   "Emit the tensors again and run what they ask for"};
  }
  Problems problems;
  try {
    Manifest manifest = read_body(json, problems);
    if (problems.empty()) return manifest;
  } catch (const nlohmann::json::exception& error) {
    return unreadable(std::string("its entries cannot be read: ") + error.what());
  }
  for (Problem& problem : problems) problem.where = where + ": " + problem.where;
  return problems;
}

Problems changed_files(const Manifest& manifest, const std::string& folder) {
  Problems problems;
  for (const ManifestFile& file : manifest.files) {
    const std::string path = folder + "/" + file.path;
    if (!std::filesystem::exists(path)) {
      problems.push_back({"manifest.missing", path, "the file is gone", "Emit the tensors again"});
    } else if (sha256_hex(read_whole_file(path)) != file.sha256) {
      problems.push_back({"manifest.changed", path, "the file was changed after it was written: its hash is another",
                          "Emit the tensors again and run what they ask for"});
    }
  }
  return problems;
}

}  // namespace cpfit::kernels
