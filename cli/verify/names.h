// The words of `cpfit verify`'s options: methods, masks, number types. An unknown one is answered with the nearest name.
#pragma once

#include <string>
#include <vector>

#include "kernels/verify/case.h"

namespace cpfit::cli {

[[nodiscard]] Outcome<std::vector<std::string>> methods_named(const std::vector<std::string>& words);
[[nodiscard]] Outcome<std::vector<attention::MaskShape>> masks_named(const std::vector<std::string>& words);
[[nodiscard]] Outcome<std::vector<kernels::Number>> numbers_named(const std::vector<std::string>& words);
/// "te_p2p, fp32_ring, ..."
[[nodiscard]] std::string method_list();

}  // namespace cpfit::cli
