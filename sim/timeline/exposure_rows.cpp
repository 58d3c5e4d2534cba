#include "sim/timeline/exposure_rows.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace cpfit::timeline {

namespace {

constexpr std::size_t kAxes = 6;
constexpr std::size_t kPasses = 3;

std::size_t place_of(const ExposureRow& row) {
  const std::size_t layer = static_cast<std::size_t>(row.layer) + 1;  // -1, no layer, wraps to 0
  return (layer * kAxes + static_cast<std::size_t>(row.axis)) * kPasses + static_cast<std::size_t>(row.pass);
}

/// An activity with several lanes on the rank counts once, at the first of them.
bool counts_here(const History& history, const RankSpan& span, std::int32_t rank) {
  for (SlotId slot = history.activity(span.instance).first_slot; slot < span.slot; ++slot) {
    if (history.rank_of(slot) == rank) return false;
  }
  return true;
}

}  // namespace

ExposureRow& ExposureRows::row(const History& history, const Instance& transfer) {
  ExposureRow key;
  key.axis = history.tag(transfer).axis;
  key.pass = history.tag(transfer).pass;
  key.layer = std::max(-1, history.layer(transfer));
  const std::size_t place = place_of(key);
  if (place >= index_.size()) index_.resize(place + 1, -1);
  if (index_[place] < 0) {
    index_[place] = static_cast<std::int32_t>(rows_.size());
    rows_.push_back(key);
  }
  return rows_[static_cast<std::size_t>(index_[place])];
}

std::vector<ExposureRow> ExposureRows::take(std::vector<RankSpan> transfers, const ShortHistory& history, std::int32_t rank) {
  if (!std::is_sorted(transfers.begin(), transfers.end(), in_time)) std::sort(transfers.begin(), transfers.end(), in_time);
  // Rows of copies that one stands for are filled alike, each with its own mark: the shortened clock serves them all, because
  // what else a row counts lies before or behind all of them.
  std::vector<Picoseconds> covered;  // (rows) end of what `busy` counts so far
  for (const RankSpan& span : transfers) {
    const engine::Activity& a = history.full().activity(span.instance);
    const bool message = history.full().tag(span.instance).work == engine::Work::kMessage;
    const bool once = counts_here(history.full(), span, rank);
    std::size_t last = std::numeric_limits<std::size_t>::max();
    Picoseconds fresh = 0;  // of the span, what its row has not covered yet
    for (std::int32_t n = history.weight(span.instance); n > 0; --n) {
      ExposureRow& sum = row(history.full(), history.full_instance(span.instance, n - 1));
      const std::size_t index = static_cast<std::size_t>(&sum - rows_.data());
      if (index >= covered.size()) covered.resize(rows_.size(), 0);
      if (index != last) {  // copies without layers share a row: each adds as much as the first
        fresh = std::max<Picoseconds>(0, span.end - std::max(span.start, covered[index]));
        covered[index] = std::max(covered[index], span.end);
        last = index;
      }
      sum.busy += fresh;
      if (once) ++sum.transfers;
      if (message) {
        (span.slot == a.first_slot ? sum.bytes_sent : sum.bytes_received) += a.amount;
      } else if (once) {
        sum.bytes_sent += a.amount;
        sum.bytes_received += a.amount;
      }
    }
  }
  for (ExposureRow& sum : rows_) sum.hidden = sum.busy - sum.running;
  std::sort(rows_.begin(), rows_.end(), [](const ExposureRow& a, const ExposureRow& b) {
    return std::tie(a.axis, a.layer, a.pass) < std::tie(b.axis, b.layer, b.pass);
  });
  index_.clear();
  return std::move(rows_);
}

}  // namespace cpfit::timeline
