#include "kernels/core/transport.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/core/require.h"

namespace cpfit::kernels {

namespace {

/// This rank's place in the group.
std::int64_t place_in(std::span<const std::int32_t> group, std::int32_t rank) {
  const auto found = std::ranges::find(group, rank);
  require(found != group.end(), "transport: rank {} is not in its group", rank);
  return found - group.begin();
}

/// Rows of one of `parts` equal parts.
std::int64_t rows_of_part(const View& all, std::size_t parts, const char* operation) {
  const auto count = static_cast<std::int64_t>(parts);
  require(count > 0 && all.rows % count == 0, "{}: {} rows in {} parts", operation, all.rows, count);
  return all.rows / count;
}

void require_part(const View& part, const View& all, std::int64_t rows, const char* operation) {
  require(part.rows == rows && part.row_elements == all.row_elements && part.number == all.number,
          "{}: a part of {} x {} {}, {} x {} {} expected", operation, part.rows, part.row_elements, name_of(part.number), rows,
          all.row_elements, name_of(all.number));
}

/// sum = parts[0] + parts[1] + ..., in this order on every rank.
void add_in_order(Operators& operators, const View& parts, const View& sum) {
  operators.copy(parts.slice(0, sum.rows), sum);
  for (std::int64_t row = sum.rows; row < parts.rows; row += sum.rows) operators.add(parts.slice(row, sum.rows), sum);
}

}  // namespace

Ticket Transport::start_all_gather(std::span<const std::int32_t> group, const View& own, const View& all) {
  const std::int64_t rows = rows_of_part(all, group.size(), "all_gather");
  require_part(own, all, rows, "all_gather");
  std::vector<Message> batch;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(group.size()); ++i) {
    const std::int32_t peer = group[static_cast<std::size_t>(i)];
    const View place = all.slice(i * rows, rows);
    if (peer == rank() && place.data == own.data) continue;  // already in its place
    batch.push_back(send_to(peer, own));
    batch.push_back(receive_from(peer, place));
  }
  place_in(group, rank());
  return start(batch);
}

Ticket Transport::start_all_to_all(std::span<const std::int32_t> group, const View& from, const View& to) {
  const std::int64_t rows = rows_of_part(from, group.size(), "all_to_all");
  require_part(from, to, to.rows, "all_to_all");
  place_in(group, rank());
  std::vector<Message> batch;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(group.size()); ++i) {
    const std::int32_t peer = group[static_cast<std::size_t>(i)];
    batch.push_back(send_to(peer, from.slice(i * rows, rows)));
    batch.push_back(receive_from(peer, to.slice(i * rows, rows)));
  }
  return start(batch);
}

void Transport::reduce_scatter(Operators& operators, std::span<const std::int32_t> group, const View& all, const View& own) {
  require_part(own, all, rows_of_part(all, group.size(), "reduce_scatter"), "reduce_scatter");
  const Array parts = operators.allocate(all.number, all.rows, all.row_elements);
  wait(start_all_to_all(group, all, parts));
  add_in_order(operators, parts, own);
}

void Transport::all_reduce(Operators& operators, std::span<const std::int32_t> group, const View& value) {
  const Array parts = operators.allocate(value.number, value.rows * static_cast<std::int64_t>(group.size()), value.row_elements);
  wait(start_all_gather(group, value, parts));
  add_in_order(operators, parts, value);
}

}  // namespace cpfit::kernels
