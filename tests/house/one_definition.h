// One name, one type: two definitions of `cpfit::X` in different files are undefined behaviour that no compiler reports (the
// linker keeps one of two different inline functions), so the tree is searched for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cpfit::house {

/// A type defined at namespace scope: whatever the linker can confuse with a namesake.
struct TypeDefinition {
  std::string name;  // "cpfit::cli::Table"
  std::string path;  // file it stands in
};

/// The struct, class, union and enum definitions at namespace scope of a formatted source file (they begin in column 0, as do the
/// namespaces around them); those of an unnamed namespace are private to their file and left out.
[[nodiscard]] std::vector<TypeDefinition> type_definitions(std::string_view path, std::string_view text);

/// One sentence per name that more than one file defines.
[[nodiscard]] std::vector<std::string> namesakes(const std::vector<TypeDefinition>& types);

}  // namespace cpfit::house
