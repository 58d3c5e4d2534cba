// Numbers as the desktop program prints them: three significant digits, never without a unit, true minus signs. The reading and
// the units are model/quantity's; here they become Qt strings, and figures that have no printer there get one.
#pragma once

#include <QString>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/quantity/problem.h"
#include "model/quantity/units.h"

namespace cpfit::gui {

[[nodiscard]] QString text_of(std::string_view text);
[[nodiscard]] std::string to_std(const QString& text);

[[nodiscard]] QString bytes_text(Bytes bytes);   // "61.3 GiB"
[[nodiscard]] QString time_text(Seconds time);   // "69.2 s", "4.81 ms", "310 µs"; three significant digits
[[nodiscard]] QString share_text(double share);  // "93 %", "0.21 %", "< 0.1 %": model/quantity/percent.h
[[nodiscard]] QString rate_text(BytesPerSecond rate);
[[nodiscard]] QString tokens_text(std::int64_t tokens);  // "128k"
[[nodiscard]] QString count_text(std::int64_t count);    // "1,560"
[[nodiscard]] QString three_digits(double value);        // "1,894" "4.81" "0.0123"

/// With its sign, a plus too: "+4.1 GiB", "−0.32 s"; "±0" when nothing changed.
[[nodiscard]] QString signed_bytes(Bytes bytes);
[[nodiscard]] QString signed_time(Seconds time);
[[nodiscard]] QString signed_share(double share);

/// "message — repair", without code and place.
[[nodiscard]] QString sentence_of(const Problem& problem);

/// The first letter upper case, underscores as blanks: a key as a label.
[[nodiscard]] QString label_of(std::string_view key);

/// A field of a CSV row: quoted where it must be.
[[nodiscard]] QString csv_field(const QString& text);

}  // namespace cpfit::gui
