// Exit codes of every cpfit command (DESIGN: a contract with scripts).
#pragma once

namespace cpfit::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;       // the world failed: no permission, a full disk, a lock, a damaged file (Error)
inline constexpr int kBadInput = 2;     // wrong usage or input: also a path that is a folder, is not there, or is no database of
                                        // cpfit, to read or to write (InputError of model/quantity/given_path.h)
inline constexpr int kNothingFits = 3;  // no legal or fitting recipe
inline constexpr int kWaived = 4;       // could not run here, with a reason

}  // namespace cpfit::cli
