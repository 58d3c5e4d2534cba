// A path that a person named. What is wrong with the path itself (a folder, a folder on the way that is not there, a file of
// another kind) is a mistake of input; what the world refuses (permission, a full disk, a lock) is not. Programs tell both apart
// by the type of what is thrown: cpfit ends with 2 for the first and with 1 for the second.
#pragma once

#include <string>

#include "model/quantity/problem.h"

namespace cpfit {

/// A failure that lies in what a person named.
class InputError : public Error {
 public:
  using Error::Error;
};

/// Why nothing can be written at `path`, whatever the world allows: it is empty, a folder, or lies in one that is not there.
/// Empty text when nothing is wrong with it. Devices and pipes are fine.
[[nodiscard]] std::string given_path_trouble(const std::string& path);

/// Throws InputError or Error: "PATH cannot be written: REASON", `reason` where nothing is wrong with the path itself.
[[noreturn]] void throw_unwritable(const std::string& path, const std::string& reason);

/// A folder with all above it. Throws InputError where a file has its name or that of one above it, else Error.
void make_given_folder(const std::string& path);

}  // namespace cpfit
