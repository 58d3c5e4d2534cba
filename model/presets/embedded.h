// The preset data files as compiled into the program: models, GPUs, clusters, framework rule sets, rates.
#pragma once

#include <span>
#include <string_view>

namespace cpfit {

struct EmbeddedFile {
  std::string_view name;  // path below model/presets, e.g. "gpus.toml"
  std::string_view text;  // the whole file
};

/// Every embedded preset file, in the order of model/CMakeLists.txt.
[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

/// Text of one preset file. Stops the program when the name is not embedded: that is a build mistake.
[[nodiscard]] std::string_view embedded_file(std::string_view name);

}  // namespace cpfit
