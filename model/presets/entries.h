// A TOML text as a flat list of its values, and what separates two of them: by which a person is told that the memory rate of a
// GPU changed rather than that a file has another hash. Tables of a list are named by what is in them:
//   gpu[H100-SXM5-80GB].memory = "80 GiB", framework[megatron-core].ring_buffers = [ 'all_steps', 'TE ...' ],
//   training.global_batch = 8
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"

namespace cpfit {

struct TextEntry {
  std::string path, value;
  friend bool operator==(const TextEntry&, const TextEntry&) = default;
};

/// In the order of the text's keys. Problem "entries.syntax" for what is no TOML.
[[nodiscard]] Outcome<std::vector<TextEntry>> toml_entries(std::string_view text);

struct EntryChange {
  std::string path;
  std::string before, after;  // empty: not there
  friend bool operator==(const EntryChange&, const EntryChange&) = default;
};

/// Values that differ, in the order of `after`, then those that are gone. A table of a list that only one side has is one change.
[[nodiscard]] std::vector<EntryChange> changed_entries(const std::vector<TextEntry>& before, const std::vector<TextEntry>& after);

/// Whether an entry belongs to no table of a list, or to one that has any of `names` among the words of its name.
[[nodiscard]] bool speaks_of(const std::string& path, const std::set<std::string>& names);

}  // namespace cpfit
