// Megatron-LM's words that are written and read. Private to model/launch.
#pragma once

#include <string_view>

#include "model/recipe/recipe.h"

namespace cpfit::launch {

inline constexpr RankOrder kMegatronOrder{};
inline constexpr RankOrder kPipelineBeforeData{{Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp}};

struct Fp8Row {
  Precision precision;
  std::string_view format, recipe;
};
inline constexpr Fp8Row kFp8[] = {{Precision::kFp8Delayed, "hybrid", "delayed"},
                                  {Precision::kFp8Current, "hybrid", "tensorwise"},
                                  {Precision::kFp8Block, "e4m3", "blockwise"},
                                  {Precision::kMxfp8, "e4m3", "mxfp8"}};

inline bool fully_sharded(const Recipe& recipe) {
  return recipe.state_sharding == StateSharding::kZero2 || recipe.state_sharding == StateSharding::kZero3;
}

}  // namespace cpfit::launch
