#include "model/cluster/import/xml.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/import.h"
#include "model/cluster/import/scan.h"

namespace cpfit {

Problems parse_xml(pugi::xml_document& document, std::string_view text, const std::string& where) {
  if (text.size() > kMostXmlBytes) {
    return {scan::problem("too_large", where, 0, fmt::format("{} bytes of XML", text.size()),
                          fmt::format("the topology of one host is read up to {} bytes", kMostXmlBytes))};
  }
  const pugi::xml_parse_result result = document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    const std::size_t end = std::min(static_cast<std::size_t>(result.offset), text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    return {scan::problem("xml", where, static_cast<std::size_t>(line), fmt::format("this is not XML: {}", result.description()),
                          "the file may have been cut: save it again")};
  }
  // Depth without recursion: nested elements may be as many as the text is long.
  int depth = 0;
  for (pugi::xml_node node = document.first_child(); node;) {
    if (node.first_child()) {
      node = node.first_child();
      if (++depth > kMostXmlDepth)
        return {scan::problem("xml", where, 0, fmt::format("elements are nested more than {} deep", kMostXmlDepth))};
      continue;
    }
    while (node && !node.next_sibling()) {
      node = node.parent();
      --depth;
    }
    if (node) node = node.next_sibling();
  }
  return {};
}

std::string text_of(const pugi::xml_node& node, const char* attribute) { return node.attribute(attribute).value(); }

std::int64_t whole_of(const pugi::xml_node& node, const char* attribute, int base) {
  return scan::whole(scan::trimmed(node.attribute(attribute).value()), base).value_or(-1);
}

std::int64_t hex_of(const pugi::xml_node& node, const char* attribute) {
  std::string_view value = node.attribute(attribute).value();
  if (value.starts_with("0x")) value.remove_prefix(2);
  return scan::whole(value, 16).value_or(-1);
}

}  // namespace cpfit
