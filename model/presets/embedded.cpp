#include "model/presets/embedded.h"

#include <cstdio>
#include <cstdlib>

namespace cpfit {

std::string_view embedded_file(std::string_view name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name == name) return file.text;
  }
  std::fprintf(stderr, "cpfit: internal error: preset file '%.*s' is not embedded\n", static_cast<int>(name.size()), name.data());
  std::abort();
}

}  // namespace cpfit
