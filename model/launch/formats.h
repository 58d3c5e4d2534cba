// The formats, each written and read in files of its own. Private to model/launch.
#pragma once

#include <cstdint>
#include <optional>

#include "model/launch/settings.h"

namespace cpfit::launch {

/// With the names of Megatron-LM; write_bridge renames them.
[[nodiscard]] Outcome<Launch> write_megatron(const LaunchCase& what, LaunchFormat as = LaunchFormat::kMegatron);
[[nodiscard]] Outcome<LaunchReading> read_megatron(const Settings& settings, std::optional<std::int64_t> gpus, LaunchFormat as);
[[nodiscard]] Outcome<Launch> write_bridge(const LaunchCase& what);
[[nodiscard]] Outcome<LaunchReading> read_bridge(const Settings& settings, std::optional<std::int64_t> gpus);
[[nodiscard]] Outcome<Launch> write_torchtitan(const LaunchCase& what);
[[nodiscard]] Outcome<LaunchReading> read_torchtitan(const Settings& settings, std::optional<std::int64_t> gpus,
                                                     std::int64_t layers);
[[nodiscard]] Outcome<Launch> write_deepspeed(const LaunchCase& what);
[[nodiscard]] Outcome<LaunchReading> read_deepspeed(const Settings& settings, std::optional<std::int64_t> gpus);

}  // namespace cpfit::launch
