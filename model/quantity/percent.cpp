#include "model/quantity/percent.h"

#include <fmt/format.h>

#include <cmath>

#include "model/quantity/text.h"

namespace cpfit {

namespace {

constexpr const char* kTiny = "< 0.1 %";

}  // namespace

bool is_tiny_share(double share) { return share != 0.0 && std::abs(share) < kSmallestShare; }

std::string percent(double share) {
  if (is_tiny_share(share)) return kTiny;
  return fmt::format("{:.1f} %", 100.0 * share + 0.0);
}

std::string signed_percent(double share) {
  if (is_tiny_share(share)) return kTiny;
  return fmt::format("{:+.1f} %", 100.0 * share + 0.0);
}

std::string given_share_text(double share) {
  // Digits of a decimal fraction that a person wrote; what binary fractions add to it lies behind them.
  std::string digits = fmt::format("{:.10g}", 100.0 * share);
  return (digits == "-0" ? "0" : digits) + " %";
}

std::string print_share(double share) {
  if (is_tiny_share(share)) return kTiny;
  // Three significant digits, zeros behind the point left out.
  const double value = 100.0 * share;
  const double magnitude = std::abs(value);
  std::string text = fmt::format("{:.{}f}", value, magnitude >= 100.0 ? 0 : magnitude >= 10.0 ? 1 : magnitude >= 1.0 ? 2 : 3);
  if (text.find('.') != std::string::npos) text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return (text == "-0" ? "0" : text) + " %";
}

}  // namespace cpfit
