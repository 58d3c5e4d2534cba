// How uncertain a step is beyond its parts.
#pragma once

namespace cpfit {

/// Composition of a step from its parts is itself uncertain; relative standard deviation, independent of the operators'. From
/// the residuals of `cpfit validate` over the production tables: their median |error| of 8-9 % is that of a normal with 0.12.
inline constexpr double kCompositionSigma = 0.12;

}  // namespace cpfit
