#include "gui/compare/twin_sums.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

QString said(const char* text) { return QCoreApplication::translate("TwinSums", text); }

constexpr double kPicosecond = 1e-12;

}  // namespace

RangeSums sums_inside(const StepPicture& picture, std::int32_t rank, TimeWindow range) {
  const std::int64_t end = picture.timeline.step;
  return range_sums(picture, rank, {std::clamp<std::int64_t>(range.from, 0, end), std::clamp<std::int64_t>(range.to, 0, end)});
}

QString TwinRow::text(std::int64_t value) const {
  return bytes ? bytes_text(Bytes(static_cast<double>(value))) : time_text(Seconds(static_cast<double>(value) * kPicosecond));
}

QString TwinRow::change_text() const {
  return bytes ? signed_bytes(Bytes(static_cast<double>(change())))
               : signed_time(Seconds(static_cast<double>(change()) * kPicosecond));
}

std::vector<TwinRow> twin_rows(const RangeSums& a, const RangeSums& b) {
  return {{said("of the step"), a.range.length(), b.range.length()},
          {said("computing"), a.compute, b.compute},
          {said("waiting for communication"), a.exposed, b.exposed},
          {said("idle"), a.idle, b.idle},
          {said("communication behind computing"), a.hidden(), b.hidden()},
          {said("moved"), std::llround(a.bytes), std::llround(b.bytes), true}};
}

}  // namespace cpfit::gui
