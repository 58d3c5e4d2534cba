// Shares as percentages: the one rule for tables, sentences, pages and the desktop program. A share that is there but below a
// tenth of a percent prints as "< 0.1 %": nobody decides by the digits behind, and "0.0 %" would say that nothing is there.
// Files of figures (JSON, CSV) hold the number itself and do not come here.
#pragma once

#include <string>

namespace cpfit {

inline constexpr double kSmallestShare = 0.001;

/// Not nothing, and below kSmallestShare either way.
[[nodiscard]] bool is_tiny_share(double share);

// print_share of text.h is the form for sentences: three digits, "12.3 %", "5 %".

/// For columns, one decimal: "5.1 %", "100.0 %", "0.0 %" for nothing.
[[nodiscard]] std::string percent(double share);

/// The same of a difference, with its sign: "+5.1 %", "-3.0 %", "+0.0 %" for none. A tiny one has no sign.
[[nodiscard]] std::string signed_percent(double share);

/// What a person gave, a budget or a tolerance, in full: "0.05 %".
[[nodiscard]] std::string given_share_text(double share);

}  // namespace cpfit
