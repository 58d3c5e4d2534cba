// A file that a command writes: whole, or an Error that says which and why. What was there before stays until the new text is
// complete: it is written beside it (NAME.new-PROCESS) and takes its place at the end. Devices and pipes are written to directly,
// and so is a file in a folder where nothing new can be made.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

namespace cpfit::cli {

/// Nothing for an empty path. Throws Error with path and reason, InputError where the path is at fault (a folder, one that is not
/// there); what `write` throws but Errors passes through.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace cpfit::cli
