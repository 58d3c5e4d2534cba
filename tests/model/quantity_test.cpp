// Reading and printing of quantities, problems as text, and the name that was probably meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "model/quantity/percent.h"
#include "model/quantity/problem.h"
#include "model/quantity/text.h"
#include "model/quantity/units.h"

namespace cpfit {
namespace {

using testing::HasSubstr;

template <class T>
Problem only_problem(const Outcome<T>& outcome) {
  EXPECT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.problems().size(), 1U);
  return outcome.problems().empty() ? Problem{} : outcome.problems().front();
}

TEST(Tokens, ReadCountsWithBinarySuffixes) {
  EXPECT_EQ(parse_tokens("131072").value(), Tokens(131072));
  EXPECT_EQ(parse_tokens("128k").value(), Tokens(131072));  // 128 * 2^10
  EXPECT_EQ(parse_tokens("128K").value(), Tokens(131072));
  EXPECT_EQ(parse_tokens(" 1M ").value(), Tokens(1048576));  // 2^20
  EXPECT_EQ(parse_tokens("1.5k").value(), Tokens(1536));     // 1.5 * 1024
  EXPECT_EQ(parse_tokens("0").value(), Tokens(0));
  EXPECT_EQ(parse_tokens("9007199254740991").value(), Tokens(9007199254740991));  // 2^53 - 1, exact
}

TEST(Tokens, RefuseWhatIsNotACount) {
  EXPECT_EQ(only_problem(parse_tokens("")).code, "quantity.empty");
  EXPECT_EQ(only_problem(parse_tokens("-4k")).code, "quantity.negative");
  EXPECT_EQ(only_problem(parse_tokens("many")).code, "quantity.not_a_number");
  EXPECT_EQ(only_problem(parse_tokens("inf")).code, "quantity.not_a_number");
  EXPECT_EQ(only_problem(parse_tokens("0x10")).code, "quantity.unknown_unit");
  EXPECT_EQ(only_problem(parse_tokens("9007199254740992")).code, "quantity.out_of_range");  // 2^53
  EXPECT_EQ(only_problem(parse_tokens("99999999999999999999M")).code, "quantity.out_of_range");
  EXPECT_EQ(only_problem(parse_tokens("1e999")).code, "quantity.out_of_range");
  const Problem fraction = only_problem(parse_tokens("1.1k"));  // 1126.4
  EXPECT_EQ(fraction.code, "quantity.not_whole");
  EXPECT_THAT(fraction.message, HasSubstr("1126.4"));
  EXPECT_THAT(fraction.repair, HasSubstr("\"1126\""));
}

TEST(Tokens, RepairNamesTheSpellingThatWasMeant) {
  EXPECT_THAT(only_problem(parse_tokens("128m")).repair, HasSubstr("\"128M\""));
  EXPECT_THAT(only_problem(parse_tokens("131,072")).repair, HasSubstr("without separators"));
  EXPECT_THAT(only_problem(parse_tokens("131_072")).repair, HasSubstr("without separators"));
  EXPECT_THAT(only_problem(parse_tokens("131 072")).code, "quantity.not_a_number");
}

TEST(Tokens, PrintShortAndExact) {
  EXPECT_EQ(print_tokens(Tokens(131072)), "128k");
  EXPECT_EQ(print_tokens(Tokens(1048576)), "1M");
  EXPECT_EQ(print_tokens(Tokens(1000)), "1000");
  EXPECT_EQ(print_tokens(Tokens(1536 * 1024)), "1536k");  // 1.5M is not a whole M
  EXPECT_EQ(print_tokens(Tokens(0)), "0");
  for (const std::int64_t count : {1L, 1023L, 1024L, 1025L, 4096L, 1048576L, 1048577L, 3L << 20}) {
    EXPECT_EQ(parse_tokens(print_tokens(Tokens(count))).value(), Tokens(count)) << count;
  }
}

TEST(ByteSizes, ReadDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("80 GiB").value(), Bytes(85899345920.0));  // 80 * 2^30
  EXPECT_EQ(parse_bytes("80GiB").value(), gib(80));
  EXPECT_EQ(parse_bytes("96 GB").value(), Bytes(96e9));
  EXPECT_EQ(parse_bytes("0.5 MiB").value(), Bytes(524288.0));
  EXPECT_EQ(parse_bytes("25 MB").value(), Bytes(25e6));
  EXPECT_EQ(parse_bytes("96 B").value(), Bytes(96));
  EXPECT_EQ(parse_bytes("1 kB").value(), parse_bytes("1 KB").value());
  EXPECT_EQ(parse_bytes("2 TiB").value(), gib(2048));
}

TEST(ByteSizes, BareNumberIsAProblemThatSuggestsTheUnit) {
  const Problem bare = only_problem(parse_bytes("80"));
  EXPECT_EQ(bare.code, "quantity.missing_unit");
  EXPECT_THAT(bare.message, HasSubstr("\"80\""));
  EXPECT_EQ(bare.repair, "write \"80 GiB\" or \"80 GB\"");
}

TEST(ByteSizes, WrongUnitIsNamedWithItsRepair) {
  const Problem lower = only_problem(parse_bytes("80 gb"));
  EXPECT_EQ(lower.code, "quantity.unknown_unit");
  EXPECT_EQ(lower.repair, "write \"80 GB\"");
  EXPECT_EQ(only_problem(parse_bytes("80 Gb")).repair, "write \"80 GB\"");  // a bit is no size
  EXPECT_EQ(only_problem(parse_bytes("80 G")).repair, "write \"80 GiB\" or \"80 GB\"");
  EXPECT_EQ(only_problem(parse_bytes("80 GB/s")).code, "quantity.unknown_unit");
  EXPECT_EQ(only_problem(parse_bytes("-1 GiB")).code, "quantity.negative");
  EXPECT_EQ(only_problem(parse_bytes("1e300 PiB")).code, "quantity.out_of_range" /* 1e300 * 2^50 > 1.8e308 */);
  EXPECT_EQ(only_problem(parse_bytes("GiB")).code, "quantity.not_a_number");
  EXPECT_EQ(only_problem(parse_bytes("1.2.3 GiB")).code, "quantity.not_a_number");
}

TEST(ByteSizes, PrintInBinaryUnitsUpToGiB) {
  EXPECT_EQ(print_bytes(Bytes(0)), "0 B");
  EXPECT_EQ(print_bytes(Bytes(96)), "96 B");
  EXPECT_EQ(print_bytes(mib(512)), "512 MiB");
  EXPECT_EQ(print_bytes(gib(61.3)), "61.3 GiB");
  EXPECT_EQ(print_bytes(gib(3.25)), "3.25 GiB");
  EXPECT_EQ(print_bytes(gib(139.84)), "139.8 GiB");
  EXPECT_EQ(print_bytes(gib(2048)), "2048 GiB");           // one unit for what people compare
  EXPECT_EQ(print_bytes(mib(1023.99)), "1 GiB");           // never "1024 MiB"
  EXPECT_EQ(print_bytes(gib(61) - gib(80)), "-19 GiB");    // a margin that is missing
  EXPECT_EQ(print_bytes(Bytes(85899345920.0)), "80 GiB");  // 80 * 2^30
  EXPECT_EQ(print_bytes(Bytes(80e9)), "74.5 GiB");         // 80e9 / 2^30 = 74.506
  EXPECT_EQ(print_bytes(Bytes(-0.0)), "0 B");
}

TEST(Rates, ReadBytesAndBitsPerSecond) {
  EXPECT_EQ(parse_rate("450 GB/s").value(), gb_per_s(450));
  EXPECT_EQ(parse_rate("400 Gb/s").value(), gb_per_s(50));  // 400 / 8
  EXPECT_EQ(parse_rate("400 Gbps").value(), gb_per_s(50));
  EXPECT_EQ(parse_rate("200 Gbit/s").value(), gb_per_s(25));
  EXPECT_EQ(parse_rate("3.35 TB/s").value(), gb_per_s(3350));
  EXPECT_EQ(parse_rate("1 GiB/s").value(), BytesPerSecond(kGiB));
}

TEST(Rates, AmbiguousCaseIsAskedBack) {
  EXPECT_EQ(only_problem(parse_rate("400 gb/s")).repair, "write \"400 GB/s\" or \"400 Gb/s\"");
  EXPECT_EQ(only_problem(parse_rate("450")).repair, "write \"450 GB/s\" or \"450 Gb/s\"");
  EXPECT_EQ(only_problem(parse_rate("450 GB")).repair, "write \"450 GB/s\" or \"450 Gb/s\"");
}

TEST(Rates, PrintInGigabytesPerSecond) {
  EXPECT_EQ(print_rate(gb_per_s(450)), "450 GB/s");
  EXPECT_EQ(print_rate(gb_per_s(3350)), "3350 GB/s");
  EXPECT_EQ(print_rate(gb_per_s(46.25)), "46.2 GB/s");          // ties to even
  EXPECT_EQ(print_rate(BytesPerSecond(1.25e8)), "0.125 GB/s");  // one gigabit
}

TEST(Times, ReadAndPrint) {
  EXPECT_DOUBLE_EQ(parse_time("3.5 us").value().value(), 3.5e-6);
  EXPECT_DOUBLE_EQ(parse_time("3.5 µs").value().value(), 3.5e-6);
  EXPECT_DOUBLE_EQ(parse_time("12ms").value().value(), 0.012);
  EXPECT_DOUBLE_EQ(parse_time("800 ns").value().value(), 8e-7);
  EXPECT_EQ(parse_time("1.5 h").value(), Seconds(5400));
  EXPECT_EQ(only_problem(parse_time("3.5")).repair, "write \"3.5 us\", \"3.5 ms\" or \"3.5 s\"");
  EXPECT_EQ(only_problem(parse_time("3.5 US")).repair, "write \"3.5 us\"");
  EXPECT_EQ(print_time(Seconds(1.284)), "1.284 s");
  EXPECT_EQ(print_time(microseconds(310)), "310 us");
  EXPECT_EQ(print_time(milliseconds(12.3456)), "12.35 ms");
  EXPECT_EQ(print_time(microseconds(999.99)), "1 ms");
  EXPECT_EQ(print_time(Seconds(86400)), "86400 s");
  EXPECT_EQ(print_time(Seconds(0)), "0 s");
}

TEST(Shares, ReadAndPrint) {
  EXPECT_DOUBLE_EQ(parse_share("5 %").value(), 0.05);
  EXPECT_DOUBLE_EQ(parse_share("5%").value(), 0.05);
  EXPECT_EQ(parse_share("0.05").value(), 0.05);
  EXPECT_EQ(parse_share("100 %").value(), 1.0);
  EXPECT_EQ(parse_share("1").value(), 1.0);
  EXPECT_THAT(only_problem(parse_share("5")).repair, HasSubstr("\"5 %\""));
  EXPECT_EQ(only_problem(parse_share("101 %")).code, "quantity.out_of_range");
  EXPECT_EQ(only_problem(parse_share("-1 %")).code, "quantity.negative");
  EXPECT_EQ(print_share(0.123), "12.3 %");
  EXPECT_EQ(print_share(0.05), "5 %");
  EXPECT_EQ(print_share(1.0), "100 %");
  EXPECT_EQ(print_share(0.0021), "0.21 %");
  EXPECT_EQ(print_share(0.0555), "5.55 %");
  EXPECT_EQ(print_share(0.99996), "100 %");
  EXPECT_EQ(print_share(-0.0123), "-1.23 %");
  EXPECT_EQ(print_share(0.0), "0 %");
  EXPECT_EQ(print_share(1.2345), "123 %");
}

TEST(Shares, BelowATenthOfAPercentPrintAsThatEverywhere) {
  // 0.000061 % is there, but no digit of it decides anything; nothing is nothing.
  EXPECT_EQ(print_share(0.00000061), "< 0.1 %");
  EXPECT_EQ(print_share(-0.0004), "< 0.1 %");
  EXPECT_EQ(print_share(0.001), "0.1 %");
  EXPECT_EQ(percent(0.0007), "< 0.1 %");
  EXPECT_EQ(percent(0.0), "0.0 %");
  EXPECT_EQ(percent(-0.0), "0.0 %");
  EXPECT_EQ(percent(0.051), "5.1 %");
  EXPECT_EQ(percent(1.0), "100.0 %");
  EXPECT_EQ(signed_percent(-0.00001), "< 0.1 %");
  EXPECT_EQ(signed_percent(-0.03), "-3.0 %");
  EXPECT_EQ(signed_percent(0.051), "+5.1 %");
  EXPECT_EQ(signed_percent(0.0), "+0.0 %");
  // What a person gave is not rounded away.
  EXPECT_EQ(given_share_text(0.0005), "0.05 %");
  EXPECT_EQ(given_share_text(0.05), "5 %");
  EXPECT_EQ(given_share_text(0.0), "0 %");
}

TEST(FlopRates, PrintInTeraflops) {
  EXPECT_EQ(print_flop_rate(tflops(412)), "412 TFLOP/s");
  EXPECT_EQ(print_flop_rate(tflops(1979)), "1979 TFLOP/s");
  EXPECT_EQ(print_flop_rate(FlopsPerSecond(45e9)), "45 GFLOP/s");
}

TEST(Printers, NeverFailOnWhatIsNotFinite) {
  EXPECT_EQ(print_bytes(Bytes(std::numeric_limits<double>::infinity())), "inf B");
  EXPECT_EQ(print_time(Seconds(std::numeric_limits<double>::quiet_NaN())), "nan ns");
}

TEST(Printers, WhatTheyPrintReadsBack) {
  // Three significant digits or more are printed, so reading back is within half of the third: 0.5 %.
  for (const double value : {1.0, 17.3, 1024.0, 8.1e5, 3.3e8, 7.7e10, 1.5e11}) {
    EXPECT_NEAR(parse_bytes(print_bytes(Bytes(value))).value().value(), value, 0.005 * value);
    EXPECT_NEAR(parse_rate(print_rate(BytesPerSecond(value))).value().value(), value, 0.005 * value);
    EXPECT_NEAR(parse_time(print_time(Seconds(value * 1e-9))).value().value(), value * 1e-9, 0.005e-9 * value);
  }
}

TEST(Problems, ReadAsOneLine) {
  EXPECT_EQ(to_text({"code", "a.toml:3", "it is wrong", "do this"}), "a.toml:3: it is wrong — do this");
  EXPECT_EQ(to_text({"code", "", "it is wrong", ""}), "it is wrong");
}

TEST(NearestName, FindsSlipsOfTheFinger) {
  const std::vector<std::string> keys = {"tp", "cp", "pp", "dp", "cp_comm", "micro_batch", "recompute"};
  EXPECT_EQ(nearest_name("mirco_batch", keys), "micro_batch");
  EXPECT_EQ(nearest_name("recomput", keys), "recompute");
  EXPECT_EQ(nearest_name("pt", {"tp", "cp"}), "tp");  // two swapped neighbours are one slip
  EXPECT_EQ(nearest_name("CP_COMM", keys), "cp_comm");
}

TEST(NearestName, FindsTheNameThatContainsTheWord) {
  const std::vector<std::string> gpus = {"a100-sxm-80gb", "h100-sxm-80gb-air-cooled", "h100-sxm-80gb"};
  EXPECT_EQ(nearest_name("h100", gpus), "h100-sxm-80gb");
}

TEST(NearestName, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("x", {"tp", "cp"}), "");  // every letter would be wrong
  EXPECT_EQ(nearest_name("learning_rate", {"tp", "cp", "micro_batch"}), "");
  EXPECT_EQ(nearest_name("tp", {}), "");
}

}  // namespace
}  // namespace cpfit
