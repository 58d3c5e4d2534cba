#include "model/quantity/counted.h"

namespace cpfit {

std::string noun_for(std::int64_t count, std::string_view noun, std::string_view plural) {
  if (count == 1) return std::string(noun);
  if (!plural.empty()) return std::string(plural);
  const auto ends = [&](std::string_view end) { return noun.ends_with(end); };
  const bool vowel_before_y = ends("ay") || ends("ey") || ends("oy") || ends("uy");
  if (ends("y") && !vowel_before_y) return std::string(noun.substr(0, noun.size() - 1)) + "ies";
  if (ends("s") || ends("x") || ends("z") || ends("ch") || ends("sh")) return std::string(noun) + "es";
  return std::string(noun) + "s";
}

std::string counted(std::int64_t count, std::string_view noun, std::string_view plural) {
  return std::to_string(count) + " " + noun_for(count, noun, plural);
}

}  // namespace cpfit
