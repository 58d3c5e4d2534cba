// Python's pickle, protocols 0 to 5, as data only: dictionaries, lists, tuples and sets (both as lists), texts, numbers,
// booleans, None, and the memo that lets parts be shared. A pickle is a program; instructions that would import a name or call
// anything are never followed: the file is refused and the name said. Reads a stream, holds what TreeLimits allows, and never
// recurses. Format: Python's Lib/pickletools.py and PEP 3154 (protocol 4), PEP 574 (protocol 5).
#pragma once

#include <istream>
#include <string>

#include "calibrate/read/value_tree.h"
#include "model/quantity/problem.h"

namespace cpfit {

struct PickledData {
  ValueTree tree;
  NodeId root = 0;
};

/// `where` stands in the problems. Codes: pickle.code (names what it would import or run), pickle.truncated, pickle.syntax
/// (byte), pickle.too_large.
[[nodiscard]] Outcome<PickledData> read_pickle(std::istream& stream, const std::string& where, const TreeLimits& limits = {});

}  // namespace cpfit
