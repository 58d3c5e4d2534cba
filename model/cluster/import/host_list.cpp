#include "model/cluster/import/host_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/cluster/import/scan.h"

namespace cpfit {
namespace {

Problem bad(std::string message) {
  return scan::problem("host_list", "", 0, std::move(message), "host lists read \"gpu[001-016,018],login1\"");
}

/// "001-016,018" -> 001 ... 016, 018, zeros kept.
Outcome<std::vector<std::string>> expand_ranges(std::string_view ranges, std::size_t most) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t comma = ranges.find(',');
    const std::string_view part = ranges.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto low = scan::whole(part.substr(0, dash));
    const auto high = dash == std::string_view::npos ? low : scan::whole(part.substr(dash + 1));
    if (!low || !high || *high < *low) return bad(fmt::format("'{}' is no range of numbers", scan::shown(part)));
    const std::size_t width = std::min<std::size_t>(part.substr(0, dash).size(), 20);
    if (static_cast<std::size_t>(*high - *low) >= most || out.size() + static_cast<std::size_t>(*high - *low) >= most)
      return bad(fmt::format("'{}' stands for more than {} names", scan::shown(part), most));
    for (std::int64_t i = *low; i <= *high; ++i) out.push_back(fmt::format("{:0{}}", i, width));
    if (comma == std::string_view::npos) return out;
    ranges.remove_prefix(comma + 1);
  }
}

}  // namespace

Outcome<std::vector<std::string>> expand_host_list(std::string_view list, std::size_t most) {
  std::vector<std::string> out;
  std::vector<std::string> names{""};  // of the part being read
  const auto close = [&] {
    if (names.size() > 1 || !names[0].empty()) out.insert(out.end(), names.begin(), names.end());
    names.assign(1, "");
  };
  for (std::size_t i = 0; i < list.size();) {
    if (list[i] == ',') {
      close();
      ++i;
    } else if (list[i] == '[') {
      const std::size_t end = list.find(']', i);
      if (end == std::string_view::npos) return bad(fmt::format("'{}' opens a bracket and does not close it", scan::shown(list)));
      const Outcome<std::vector<std::string>> numbers = expand_ranges(list.substr(i + 1, end - i - 1), most);
      if (!numbers) return numbers.problems();
      if (numbers->size() * names.size() + out.size() > most)
        return bad(fmt::format("'{}' stands for more than {} names", scan::shown(list), most));
      std::vector<std::string> longer;
      longer.reserve(numbers->size() * names.size());
      for (const std::string& name : names) {
        for (const std::string& number : *numbers) longer.push_back(name + number);
      }
      names = std::move(longer);
      i = end + 1;
    } else {
      const std::size_t end = std::min(list.find_first_of(",[", i), list.size());
      if (names.size() > 1 && end - i > 256) return bad("a host name of more than 256 letters");
      for (std::string& name : names) name.append(list.substr(i, end - i));
      i = end;
    }
    if (out.size() + names.size() > most) return bad(fmt::format("'{}' stands for more than {} names", scan::shown(list), most));
  }
  close();
  return out;
}

}  // namespace cpfit
