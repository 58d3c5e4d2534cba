// Jobs as people paste them: arguments and configurations of the frameworks, messages of a job that died, document lengths.
#include <algorithm>
#include <cstdio>
#include <optional>

#include "model/launch/launch.h"
#include "sim/ask/documents.h"
#include "sim/ask/oom.h"
#include "tests/fuzz/targets.h"

namespace cpfit::fuzz {

/// The first byte chooses the format.
void launch(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto format = static_cast<LaunchFormat>(static_cast<unsigned char>(bytes.front()) % 4);
  const std::string_view text = bytes.substr(1);
  for (const std::optional<std::int64_t> gpus : {std::optional<std::int64_t>{}, std::optional<std::int64_t>{64}}) {
    const Outcome<LaunchReading> read = read_launch(format, text, gpus, gpus ? 32 : 0);
    must(read.ok() != !read.problems().empty(), "a recipe or problems");
    if (!read.ok() || !read->sequence || !read->global_batch) continue;
    LaunchCase what;
    what.recipe = read->recipe;
    what.training.sequence = *read->sequence;
    what.training.global_batch = *read->global_batch;
    what.layers = 32;
    const Outcome<Launch> written = write_launch(format, what);
    if (!written.ok()) continue;
    (void)to_annotated_text(*written);
    const Outcome<LaunchReading> again = read_launch(format, to_text(*written), what.recipe.world(), 32);
    if (!again.ok()) std::fprintf(stderr, "%s\n%s\n", to_text(*written).c_str(), to_text(again.problems().front()).c_str());
    must(again.ok(), "arguments that were written can be read");
  }
}

void oom(std::string_view bytes) {
  if (const auto message = ask::parse_oom(bytes)) (void)ask::diagnose(*message);
  if (const auto lengths = ask::parse_lengths(bytes)) {
    if (lengths->size() > 64) return;
    double documents = 0;
    std::int64_t longest = 1;
    for (const DocumentClass& entry : *lengths) {
      longest = std::max(longest, entry.length);
      documents += entry.count;
    }
    if (documents < 10'000) (void)ask::pack(*lengths, longest, 8);
  }
}

}  // namespace cpfit::fuzz
