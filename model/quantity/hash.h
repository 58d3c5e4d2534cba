// The content hash that names what a run was made from: scenario text, preset files, calibrations.
#pragma once

#include <string>
#include <string_view>

namespace cpfit {

/// SHA-256 (FIPS 180-4) of the bytes of `content`, as 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view content);

}  // namespace cpfit
