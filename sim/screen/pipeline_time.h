// How long a pipeline whose chunks differ takes for its turns: a recurrence over the same turns that the timeline simulates. For
// equal chunks the closed form of compose.cpp gives the same; models that alternate windowed and global layers need this one.
#pragma once

#include <cstdint>
#include <span>

#include "model/recipe/recipe.h"

namespace cpfit {

/// Seconds from the first forward to the last backward of `micro_batches`. `forward`, `backward`: seconds of one micro-batch
/// through each chunk, in pipeline order (pp*vpp); `weights`: of the second part of a split backward, which `backward` then
/// leaves out, else empty. A turn starts when its stage is free and its input exists; messages take no time. Of many
/// micro-batches only as many are followed as it takes to see the pace of the steady state: O((pp vpp)^2).
[[nodiscard]] double pipeline_time(const Recipe& recipe, std::int64_t micro_batches, std::span<const double> forward,
                                   std::span<const double> backward, std::span<const double> weights = {});

/// What one stream of `chunks` equal collectives leaves exposed around the passes of an interleaved stage. Chunks are finished
/// one after the other, `gap` apart: pp micro-batches of one chunk run before the next chunk's. Reductions: the one of the k-th
/// chunk (from 0) cannot start before k gaps are over, so that the last ends at max over k of k*gap + (chunks - k)*each; beyond
/// the last chunk's own pass at (chunks - 1)*gap that is each + (chunks - 1)*max(0, each - gap). Gathers mirror it: the first is
/// waited for whole, and every later one hides behind the gap before it. Seconds.
[[nodiscard]] double chunk_by_chunk(double each, double gap, std::int32_t chunks);

}  // namespace cpfit
