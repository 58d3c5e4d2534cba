// How long a pipeline whose chunks differ takes for its turns: a recurrence over the same turns that the timeline simulates. For
// equal chunks the closed form of compose.cpp gives the same; models that alternate windowed and global layers need this one.
#pragma once

#include <cstdint>
#include <span>

#include "model/recipe/recipe.h"

namespace cpfit {

/// Seconds from the first forward to the last backward of `micro_batches`. `forward`, `backward`: seconds of one micro-batch
/// through each chunk, in pipeline order (pp*vpp). A turn starts when its stage is free and its input exists; messages take no
/// time. Of many micro-batches only as many are followed as it takes to see the pace of the steady state: O((pp vpp)^2).
[[nodiscard]] double pipeline_time(const Recipe& recipe, std::int64_t micro_batches, std::span<const double> forward,
                                   std::span<const double> backward);

}  // namespace cpfit
