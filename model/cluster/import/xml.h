// XML that anybody may have written: parsed with a limit on its size and on its nesting. Private to this folder (pugixml).
#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "model/quantity/problem.h"

namespace cpfit {

/// Fills `document`; the problems name file and line. No entity is expanded, no other file is read.
[[nodiscard]] Problems parse_xml(pugi::xml_document& document, std::string_view text, const std::string& where);

[[nodiscard]] std::string text_of(const pugi::xml_node& node, const char* attribute);
/// -1 when it is absent or no whole number ("-1" too).
[[nodiscard]] std::int64_t whole_of(const pugi::xml_node& node, const char* attribute, int base = 10);
/// "0x020700" with its prefix.
[[nodiscard]] std::int64_t hex_of(const pugi::xml_node& node, const char* attribute);

}  // namespace cpfit
