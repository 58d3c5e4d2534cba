// manifest.json of a folder of tensors (emit.h): what was emitted, with a hash of every file and of itself, so that a check
// judges what was handed out and nothing else.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "kernels/verify/truth_of_case.h"

namespace cpfit::kernels {

struct ManifestFile {
  std::string path;  // relative to the folder
  std::string sha256;
  std::vector<std::int64_t> shape;
  std::string type;  // NumPy's
};

/// Of a tensor of a case as it is stored: tokens, heads, size of a head (lse: without).
[[nodiscard]] std::vector<std::int64_t> shape_of(const Case& verified, TensorName tensor);

struct ManifestCase {
  Case verified;
  std::array<ErrorFigures, kTensorCount> kernel;  // of the unsharded kernel, in the case's number type
};

struct Manifest {
  std::string tool_version;
  std::string fixture_hash;
  std::vector<ManifestCase> cases;
  Case block;
  std::vector<ManifestFile> files;
};

[[nodiscard]] std::string manifest_json(const Manifest& manifest);
/// Problem "manifest.changed" when its own hash does not fit, "manifest.format" when it is none.
[[nodiscard]] Outcome<Manifest> parse_manifest(const std::string& json, const std::string& where);

/// Files that are missing or whose hash is another than the manifest's.
[[nodiscard]] Problems changed_files(const Manifest& manifest, const std::string& folder);

}  // namespace cpfit::kernels
