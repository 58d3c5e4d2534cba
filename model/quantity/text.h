// Reading and printing quantities as people write them. Token counts read "131072", "128k", "1M" (2^10, 2^20); sizes
// "80 GiB", "96 GB"; rates "450 GB/s", "400 Gb/s"; times "3.5 us"; shares "5 %" or "0.05". A bare number where a unit is
// needed is a problem that suggests the unit. Capacities print in GiB, link rates in GB/s; never a number without its unit.
//
// Every parser answers a negative, endless or unreadable number with one Problem: code "quantity.*", `where` left empty for
// the caller who knows the place, and a repair. Blanks around the text and between number and unit do not matter; the case
// of a unit does, because b and B, m and M are different things.
#pragma once

#include <string>
#include <string_view>

#include "model/quantity/problem.h"
#include "model/quantity/units.h"

namespace cpfit {

[[nodiscard]] Outcome<Tokens> parse_tokens(std::string_view text);        // whole, below 2^53: "1.5k" is 1536, "1.1k" a problem
[[nodiscard]] Outcome<Bytes> parse_bytes(std::string_view text);          // B, kB/KB … PB (10^3n), KiB … PiB (2^10n)
[[nodiscard]] Outcome<BytesPerSecond> parse_rate(std::string_view text);  // sizes per second; bits: Gb/s, Gbit/s, Gbps
[[nodiscard]] Outcome<Seconds> parse_time(std::string_view text);         // ns, us or µs, ms, s, min, h
[[nodiscard]] Outcome<double> parse_share(std::string_view text);         // "5 %" -> 0.05; from 0 to 1

// Printers keep one unit for what people compare: nothing above GiB, GB/s and TFLOP/s ("2048 GiB", "3350 GB/s"). Negative
// amounts (a margin that is missing) print with their sign.
[[nodiscard]] std::string print_tokens(Tokens tokens);           // 131072 -> "128k", 1048576 -> "1M", 1000 -> "1000"; exact
[[nodiscard]] std::string print_bytes(Bytes bytes);              // "61.3 GiB", "512 MiB", "96 B"
[[nodiscard]] std::string print_rate(BytesPerSecond rate);       // "450 GB/s"
[[nodiscard]] std::string print_time(Seconds time);              // "1.284 s", "310 us"
[[nodiscard]] std::string print_share(double share);             // "12.3 %"
[[nodiscard]] std::string print_flop_rate(FlopsPerSecond rate);  // "412 TFLOP/s"

}  // namespace cpfit
