#include "model/quantity/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

namespace cpfit {
namespace {

struct Unit {
  std::string_view name;
  double scale;  // in the SI base unit of its kind
};

/// What one parser knows about its kind of quantity.
struct Kind {
  std::string_view noun;                      // "size", "rate"
  std::span<const Unit> units;                // accepted spellings
  std::span<const std::string_view> typical;  // suggested for a bare number, the likeliest first
  std::string_view gap;                       // between number and unit: "80 GiB", but "128k"
};

constexpr Unit kByteUnits[] = {{"B", 1.0},
                               {"kB", 1e3},
                               {"KB", 1e3},
                               {"MB", 1e6},
                               {"GB", 1e9},
                               {"TB", 1e12},
                               {"PB", 1e15},
                               {"KiB", kKiB},
                               {"MiB", kMiB},
                               {"GiB", kGiB},
                               {"TiB", 1024.0 * kGiB},
                               {"PiB", 1024.0 * 1024.0 * kGiB}};
constexpr std::string_view kTypicalBytes[] = {"GiB", "GB"};

constexpr Unit kRateUnits[] = {
    {"B/s", 1.0},          {"kB/s", 1e3},         {"KB/s", 1e3},         {"MB/s", 1e6},          {"GB/s", 1e9},
    {"TB/s", 1e12},        {"KiB/s", kKiB},       {"MiB/s", kMiB},       {"GiB/s", kGiB},        {"TiB/s", 1024.0 * kGiB},
    {"b/s", 1.0 / 8.0},    {"kb/s", 1e3 / 8.0},   {"Mb/s", 1e6 / 8.0},   {"Gb/s", 1e9 / 8.0},    {"Tb/s", 1e12 / 8.0},
    {"kbit/s", 1e3 / 8.0}, {"Mbit/s", 1e6 / 8.0}, {"Gbit/s", 1e9 / 8.0}, {"Tbit/s", 1e12 / 8.0}, {"Mbps", 1e6 / 8.0},
    {"Gbps", 1e9 / 8.0},   {"Tbps", 1e12 / 8.0}};
constexpr std::string_view kTypicalRates[] = {"GB/s", "Gb/s"};

constexpr Unit kTimeUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"\u00b5s", 1e-6}, {"\u03bcs", 1e-6},  // micro sign, Greek mu
                               {"ms", 1e-3}, {"s", 1.0},   {"min", 60.0},     {"h", 3600.0}};
constexpr std::string_view kTypicalTimes[] = {"us", "ms", "s"};

constexpr Unit kTokenUnits[] = {{"", 1.0}, {"k", 1024.0}, {"K", 1024.0}, {"M", 1024.0 * 1024.0}};
constexpr std::string_view kTypicalTokens[] = {"k", "M"};

constexpr Unit kShareUnits[] = {{"", 1.0}, {"%", 0.01}};
constexpr std::string_view kTypicalShares[] = {"%"};

constexpr Kind kSize{"size", kByteUnits, kTypicalBytes, " "};
constexpr Kind kRate{"rate", kRateUnits, kTypicalRates, " "};
constexpr Kind kTime{"time", kTimeUnits, kTypicalTimes, " "};
constexpr Kind kTokenCount{"token count", kTokenUnits, kTypicalTokens, ""};
constexpr Kind kShare{"share", kShareUnits, kTypicalShares, " "};

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53: below it every integer is a double

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// '"80 GiB" or "80 GB"': the number with each unit.
std::string spelled(std::string_view number, std::span<const std::string_view> units, const Kind& kind) {
  std::string text;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (i > 0) text += i + 1 == units.size() ? " or " : ", ";
    text += fmt::format("\"{}{}{}\"", number, kind.gap, units[i]);
  }
  return text;
}

Problem unknown_unit(std::string_view text, std::string_view number, std::string_view unit, const Kind& kind) {
  // "80 gb" was most likely GB; "400 gb/s" may be GB/s or Gb/s, and only the writer knows which.
  std::vector<std::string_view> meant;
  for (const Unit& known : kind.units) {
    if (same_letters(known.name, unit) && !known.name.empty()) meant.push_back(known.name);
  }
  const std::span<const std::string_view> suggested = meant.empty() ? kind.typical : std::span<const std::string_view>(meant);
  return {"quantity.unknown_unit", "",
          fmt::format("\"{}\" has the unit \"{}\", which is not a unit of a {}", text, unit, kind.noun),
          fmt::format("write {}", spelled(number, suggested, kind))};
}

Problem not_a_number(std::string_view text, const Kind& kind) {
  const std::string repair = text.find_first_of(",_'") != std::string_view::npos
                                 ? "write the digits without separators, and a point before decimals"
                                 : fmt::format("write for example {}", spelled("4", kind.typical, kind));
  return {"quantity.not_a_number", "", fmt::format("\"{}\" is not a {}", text, kind.noun), repair};
}

/// The amount in the base unit of `kind`, finite and not negative.
Outcome<double> parse_amount(std::string_view original, const Kind& kind) {
  const std::string_view text = trim(original);
  if (text.empty()) {
    return Problem{"quantity.empty", "", fmt::format("a {} is missing here", kind.noun),
                   fmt::format("write for example {}", spelled("4", kind.typical, kind))};
  }
  const bool negative = text.front() == '-';
  const std::string_view digits = negative ? text.substr(1) : text;
  // from_chars also reads "inf" and "nan": a number begins with a digit or a point here.
  const bool starts_like_number = !digits.empty() && (digits.front() == '.' || (digits.front() >= '0' && digits.front() <= '9'));
  if (!starts_like_number) return not_a_number(text, kind);

  double number = 0.0;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc::invalid_argument) return not_a_number(text, kind);
  const std::string_view number_text = digits.substr(0, static_cast<std::size_t>(rest - digits.data()));
  const std::string_view unit = trim(digits.substr(number_text.size()));
  if (negative) {
    return Problem{"quantity.negative", "", fmt::format("\"{}\" is negative; a {} cannot be", text, kind.noun),
                   "write a number that is zero or larger"};
  }
  if (!unit.empty() && std::string_view(".,_'0123456789").find(unit.front()) != std::string_view::npos)
    return not_a_number(text, kind);

  const auto known = std::ranges::find(kind.units, unit, &Unit::name);
  if (known == kind.units.end()) {
    if (!unit.empty()) return unknown_unit(text, number_text, unit, kind);
    return Problem{"quantity.missing_unit", "", fmt::format("\"{}\" has no unit", text),
                   fmt::format("write {}", spelled(number_text, kind.typical, kind))};
  }
  const double amount = number * known->scale;
  if (error == std::errc::result_out_of_range || !std::isfinite(amount)) {
    return Problem{"quantity.out_of_range", "", fmt::format("\"{}\" is beyond what a {} can be", text, kind.noun),
                   "write a number of ordinary size"};
  }
  return amount;
}

/// At least `significant` digits and at least `least_decimals` decimals; zeros at the end dropped.
std::string decimal(double value, int significant, int least_decimals) {
  if (value == 0.0) return "0";
  if (!std::isfinite(value)) return fmt::format("{}", value);
  constexpr int kMostDecimals = 12;
  const int before_point = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;  // negative for 0.001
  std::string text = fmt::format("{:.{}f}", value, std::clamp(significant - before_point, least_decimals, kMostDecimals));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

/// `value` in the largest of `units` (ascending) that leaves at least 1 before the point once rounded: 1023.99 MiB is "1 GiB".
std::string in_best_unit(double value, std::span<const Unit> units, int significant, int least_decimals) {
  std::size_t best = 0;
  const double rounding = 0.5 * std::pow(10.0, -least_decimals);
  while (std::isfinite(value) && best + 1 < units.size()) {
    const double step = units[best + 1].scale / units[best].scale;
    if (std::abs(value) / units[best].scale < step - rounding) break;
    ++best;
  }
  return fmt::format("{} {}", decimal(value / units[best].scale, significant, least_decimals), units[best].name);
}

}  // namespace

Outcome<Tokens> parse_tokens(std::string_view text) {
  const Outcome<double> amount = parse_amount(text, kTokenCount);
  if (!amount) return amount.problems();
  if (*amount >= kExactIntegers) {
    return Problem{"quantity.out_of_range", "", fmt::format("\"{}\" is more tokens than cpfit counts", trim(text)),
                   "write a count below 2^53"};
  }
  if (*amount != std::floor(*amount)) {
    return Problem{"quantity.not_whole", "", fmt::format("\"{}\" is {} tokens, which is not a whole number", trim(text), *amount),
                   fmt::format("write \"{:.0f}\"; k is 1024 and M is 1048576 tokens", std::round(*amount))};
  }
  return Tokens(static_cast<std::int64_t>(*amount));
}

Outcome<Bytes> parse_bytes(std::string_view text) {
  const Outcome<double> amount = parse_amount(text, kSize);
  if (!amount) return amount.problems();
  return Bytes(*amount);
}

Outcome<BytesPerSecond> parse_rate(std::string_view text) {
  const Outcome<double> amount = parse_amount(text, kRate);
  if (!amount) return amount.problems();
  return BytesPerSecond(*amount);
}

Outcome<Seconds> parse_time(std::string_view text) {
  const Outcome<double> amount = parse_amount(text, kTime);
  if (!amount) return amount.problems();
  return Seconds(*amount);
}

Outcome<double> parse_share(std::string_view text) {
  const Outcome<double> amount = parse_amount(text, kShare);
  if (!amount) return amount.problems();
  if (*amount > 1.0) {
    const std::string_view written = trim(text);
    const bool percent = written.back() == '%';
    return Problem{"quantity.out_of_range", "", fmt::format("\"{}\" is more than the whole", written),
                   percent || *amount > 100.0 ? std::string("write a share from \"0 %\" to \"100 %\"")
                                              : fmt::format("write \"{} %\" if percent was meant", written)};
  }
  return *amount;
}

std::string print_tokens(Tokens tokens) {
  constexpr std::int64_t kK = 1024;
  const std::int64_t count = tokens.count();
  if (count == 0 || count % kK != 0) return fmt::format("{}", count);
  if (count % (kK * kK) != 0) return fmt::format("{}k", count / kK);
  return fmt::format("{}M", count / (kK * kK));
}

std::string print_bytes(Bytes bytes) {
  constexpr Unit kUnits[] = {{"B", 1.0}, {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}};
  return in_best_unit(bytes.value(), kUnits, 3, 1);
}

std::string print_rate(BytesPerSecond rate) {
  constexpr Unit kUnits[] = {{"GB/s", 1e9}};
  return in_best_unit(rate.value(), kUnits, 3, 1);
}

std::string print_time(Seconds time) {
  if (time.value() == 0.0) return "0 s";
  constexpr Unit kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
  return in_best_unit(time.value(), kUnits, 4, 1);
}

std::string print_flop_rate(FlopsPerSecond rate) {
  constexpr Unit kUnits[] = {{"FLOP/s", 1.0}, {"kFLOP/s", 1e3}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}};
  return in_best_unit(rate.value(), kUnits, 3, 1);
}

}  // namespace cpfit
