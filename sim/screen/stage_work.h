// What a pipeline stage does beyond its layers' forward and backward: what recompute repeats, the parameters it holds, the
// accumulation of gradients, the optimizer. Used by the screen's composition and by the timeline's schedules.
#pragma once

#include "model/transformer/parameters.h"
#include "sim/screen/screen.h"

namespace cpfit {

/// What backward runs again, in layers (or as shares of one layer).
struct Repeated {
  double attention = 0;  // core attention with its ring
  double rest = 0;       // everything else
  double mlp = 0;        // the MLP half alone, beyond what `rest` has of it

  friend Repeated operator*(const Repeated& one, double count) {
    return {one.attention * count, one.rest * count, one.mlp * count};
  }
  Repeated& operator+=(const Repeated& other) {
    attention += other.attention;
    rest += other.rest;
    mlp += other.mlp;
    return *this;
  }
};

/// Backward runs in two parts: gradients of inputs, and later those of weights (ZB-H1).
[[nodiscard]] inline bool split_backward(const Recipe& recipe) {
  return recipe.pp > 1 && recipe.schedule == Schedule::kZeroBubble;
}

/// Shares of a fully recomputed layer, and of a layer under selective recompute (framework policies).
[[nodiscard]] Repeated repeated_by_full(const RuleSet& rules);
[[nodiscard]] Repeated repeated_by_selective(const RuleSet& rules);
/// Of a layer whose MLP half runs again.
inline constexpr Repeated kMlpAgain{0.0, 0.0, 1.0};
/// Over a stage of `layers` layers: full and block recompute repeat whole layers, the others a part of each.
[[nodiscard]] Repeated repeated_on(const Recipe& recipe, const RuleSet& rules, double layers);

/// Parameters of one rank of a stage with `layers` layers: tp-sharded products, replicated norms, vocabulary at the ends.
[[nodiscard]] double parameters_on_stage(const ScreenContext& context, const Recipe& recipe, const ParameterCount& count,
                                         double layers, bool first, bool last);

/// The separate pass that adds one micro-batch's gradients, where the framework has one.
[[nodiscard]] Seconds accumulation_time(const ScreenContext& context, const Recipe& recipe, double parameters);

/// Adam over this rank's shard: gradient, master weight and two moments read; master, moments and the bf16 weight written; one
/// more pass over the gradients for the clipping norm: 30 + 4 bytes per parameter of the shard. Sums of gradients that a pass of
/// their own adds up are clipped and cleared whole, by every rank of the shards: read, read and written, and written once more,
/// 16 bytes (nanotron optim/clip_grads.py, gradient_accumulator.py zero_grad).
[[nodiscard]] Seconds optimizer_time(const ScreenContext& context, const Recipe& recipe, double parameters);

/// Gradients of tied embeddings, which the first and the last stage sum up after their last backward with nothing beside
/// (Megatron finalize_model_grads.py _allreduce_word_embedding_grads, nanotron tied_parameters.py sync_tied_weights_gradients).
/// Nothing where one stage holds both ends or the tables are two.
[[nodiscard]] Bytes tied_gradients(const ScreenContext& context, const Recipe& recipe);

}  // namespace cpfit
