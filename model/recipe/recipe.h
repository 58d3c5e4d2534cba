// A recipe: every choice that changes a figure. World size = tp * cp * pp * dp. Vocabulary: DESIGN section 4.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"
#include "model/quantity/units.h"

namespace cpfit {

enum class CpComm : std::uint8_t { kP2p, kAllGather, kA2a, kA2aP2p, kDoubleRing };  // TransformerEngine's names + double ring
enum class ShardLayout : std::uint8_t { kZigzag, kContiguous, kStriped };           // how a sequence is cut over cp
/// What backward runs again: what the framework's selective recompute drops, the MLP half of every layer, whole layers, or the
/// first n layers of each stage.
enum class RecomputeKind : std::uint8_t { kNone, kSelective, kMlp, kFull, kBlock };
enum class StateSharding : std::uint8_t {
  kNone,
  kZero1,
  kZero2,
  kZero3
};  // zero1 = Megatron distributed optimizer; zero3 = FSDP
enum class Precision : std::uint8_t { kBf16, kFp16, kFp8Delayed, kFp8Current, kFp8Block, kMxfp8, kNvfp4 };
/// Interleaved iff vpp > 1. Zero bubble: ZB-H1 of Qi et al. 2024, backward split into input and weight gradients.
enum class Schedule : std::uint8_t { kOneFOneB, kInterleaved, kGpipe, kZeroBubble };
enum class LayoutKind : std::uint8_t { kEven, kEmbeddingAndLossAsLayers, kFirstLast, kExplicit, kCostBalanced };

struct Recompute {
  RecomputeKind kind = RecomputeKind::kNone;
  std::int32_t block_layers = 0;  // kBlock only: layers per stage fully recomputed
  friend auto operator<=>(const Recompute&, const Recompute&) = default;
};

/// How L layers are spread over pp * vpp chunks; resolved by stage_layout.h.
struct StageLayout {
  LayoutKind kind = LayoutKind::kEven;
  std::int32_t first = 0;  // kFirstLast: layers of the first and of the last stage
  std::int32_t last = 0;
  std::vector<std::int32_t> layers;  // kExplicit: one count per stage (pp), or per chunk (pp * vpp, pipeline order)
  friend auto operator<=>(const StageLayout&, const StageLayout&) = default;
};

/// Order of the axes from fastest to slowest varying rank. Megatron: tp, cp, dp, pp. Llama 3 (Meta): tp, cp, pp, dp.
enum class Axis : std::uint8_t { kTp, kCp, kDp, kPp };
struct RankOrder {
  Axis axes[4] = {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};
  friend auto operator<=>(const RankOrder&, const RankOrder&) = default;
};

struct Recipe {
  std::int32_t tp = 1;
  std::int32_t cp = 1;
  std::int32_t pp = 1;
  std::int32_t dp = 1;
  std::int32_t vpp = 1;
  CpComm cp_comm = CpComm::kP2p;
  std::int32_t a2a_degree = 1;  // kA2aP2p: ranks of the inner all-to-all group (u), cp = u * r; kA2a: = cp
  std::int32_t window = 1;      // kDoubleRing: ranks of the inner ring (w), cp = W * w
  ShardLayout shard_layout = ShardLayout::kZigzag;
  StageLayout stage_layout;
  Schedule schedule = Schedule::kOneFOneB;
  std::int32_t micro_batch = 1;  // sequences per micro-batch per dp rank
  Recompute recompute;
  StateSharding state_sharding = StateSharding::kZero1;
  /// Data ranks (dp x cp) that together hold one copy of what state_sharding shards, neighbours in rank order; 0: all of them.
  /// With fewer, dp * cp / state_shards such groups are replicas of each other: hybrid sharding (HSDP), several instances of
  /// Megatron's distributed optimizer.
  std::int32_t state_shards = 0;
  bool sequence_parallel = true;  // Megatron SP; effective only when tp > 1
  Precision precision = Precision::kBf16;
  bool overlap_tp = false;  // TP collectives behind GEMMs (user buffers, async TP)
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;
  bool overlap_p2p = true;  // pipeline messages; effective when interleaved
  RankOrder rank_order;
  std::string framework = "megatron-core";  // name of a rule set in frameworks.toml

  [[nodiscard]] std::int64_t world() const { return std::int64_t{tp} * cp * pp * dp; }
  friend auto operator<=>(const Recipe&, const Recipe&) = default;
};

/// Ranks of the inner all-to-all group: cp for a2a (whatever a2a_degree says), a2a_degree for a2a+p2p, else 1.
[[nodiscard]] inline std::int32_t a2a_ranks(const Recipe& recipe) {
  if (recipe.cp_comm == CpComm::kA2a) return recipe.cp;
  return recipe.cp_comm == CpComm::kA2aP2p ? recipe.a2a_degree : 1;
}

/// Ranks that together hold one copy of the sharded states, and how many such copies there are.
[[nodiscard]] inline std::int64_t shard_ranks(const Recipe& recipe) {
  return recipe.state_shards > 0 ? recipe.state_shards : std::int64_t{recipe.dp} * recipe.cp;
}
[[nodiscard]] inline std::int64_t shard_replicas(const Recipe& recipe) {
  return std::int64_t{recipe.dp} * recipe.cp / shard_ranks(recipe);
}

inline constexpr std::int32_t kMaxDegree = 1 << 20;               // of one axis, as a person may write it
inline constexpr std::int64_t kMaxWorld = std::int64_t{1} << 24;  // GPUs of one recipe, as a person may write it

/// Canonical text: "tp=2,cp=4,cp_comm=p2p,pp=1,dp=2,..."; every key that differs from the default is printed, tp/cp/pp/dp always.
/// Values that follow from others are left out: a2a_degree of a2a (= cp), schedule (interleaved iff vpp > 1).
[[nodiscard]] std::string to_text(const Recipe& recipe);

/// Text that parse_recipe(text, base) reads back exactly, whatever `base` holds: as to_text, and every key in which they differ.
[[nodiscard]] std::string to_text(const Recipe& recipe, const Recipe& base);

/// Every key: parse_recipe reads it back exactly over any base.
[[nodiscard]] std::string to_complete_text(const Recipe& recipe);

/// Reads what to_text prints; keys not named keep the values of `base`, save what follows from a named key: naming cp or
/// cp_comm sets an unnamed a2a_degree and window to what that kind means, naming vpp sets an unnamed schedule.
/// Unknown keys get a suggestion.
[[nodiscard]] Outcome<Recipe> parse_recipe(std::string_view text, const Recipe& base);

/// The names of all keys of a recipe's text, in the order of the struct.
[[nodiscard]] std::vector<std::string> recipe_keys();

/// Sets one field by its key, as parse_recipe does; empty when it went well. Used for the keys of scenario files.
[[nodiscard]] Problems set_recipe_field(Recipe& recipe, std::string_view key, std::string_view value);

/// "none", "selective", "mlp", "full", "block-5".
[[nodiscard]] std::string to_text(const Recompute& value);
[[nodiscard]] Outcome<Recompute> parse_recompute(std::string_view text);
/// "even", "embedding_loss", "first=7;last=7" (either alone: the other counts as a middle stage), "explicit=2/34*2/3"
/// (34*2 is thirty-four entries of 2 layers), "cost_balanced".
[[nodiscard]] std::string to_text(const StageLayout& value);
[[nodiscard]] Outcome<StageLayout> parse_stage_layout(std::string_view text);
/// "tp-cp-dp-pp", fastest first. An "ep" (Megatron writes tp-cp-ep-dp-pp) is passed over: dense models have no expert axis.
[[nodiscard]] std::string to_text(const RankOrder& value);
[[nodiscard]] Outcome<RankOrder> parse_rank_order(std::string_view text);

[[nodiscard]] std::string_view name_of(CpComm value);
[[nodiscard]] std::string_view name_of(ShardLayout value);
[[nodiscard]] std::string_view name_of(RecomputeKind value);
[[nodiscard]] std::string_view name_of(StateSharding value);
[[nodiscard]] std::string_view name_of(Precision value);
[[nodiscard]] std::string_view name_of(Schedule value);
[[nodiscard]] std::string_view name_of(Axis value);

/// Names of the fields in which two recipes differ, in the order of the struct ("recompute", "micro_batch", ...).
[[nodiscard]] std::vector<std::string> differences(const Recipe& a, const Recipe& b);

}  // namespace cpfit
