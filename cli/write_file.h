// A file that a command writes: whole, or an Error that says which and why.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

namespace cpfit::cli {

/// Nothing for an empty path. Throws Error with path and reason.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace cpfit::cli
