#include "kernels/cuda/prepared_mask.h"

#include "kernels/cuda/tile_extremes.cuh"

namespace cpfit::kernels::cuda {

PreparedMask prepare_mask(cudaStream_t stream, const BlockMask& mask, std::int64_t queries, std::int64_t keys, int query_tile,
                          int key_tile) {
  device::DeviceMask prepared;
  prepared.kind = mask.kind;
  prepared.queries = static_cast<int>(queries);
  prepared.keys = static_cast<int>(keys);
  if (mask.kind != attention::BlockKind::kMixed) return {prepared, Scratch(0, stream, "mask")};

  const int query_tiles = device::tiles_in(prepared.queries, query_tile);
  const int key_tiles = device::tiles_in(prepared.keys, key_tile);
  const std::int64_t row_bytes = query_tiles * static_cast<std::int64_t>(sizeof(device::RowExtremes));
  const std::int64_t key_bytes = key_tiles * static_cast<std::int64_t>(sizeof(device::KeyExtremes));
  Scratch extremes(row_bytes + key_bytes, stream, "mask");
  auto* const rows = static_cast<device::RowExtremes*>(extremes.data());
  auto* const columns = reinterpret_cast<device::KeyExtremes*>(static_cast<char*>(extremes.data()) + row_bytes);
  prepared.ranges = static_cast<const attention::KeyRange*>(mask.query_range.data);
  prepared.positions = static_cast<const int*>(mask.key_position.data);
  if (query_tiles + key_tiles > 0) {
    device::tile_extremes_kernel<32>
        <<<static_cast<unsigned>(query_tiles + key_tiles), 32, 0, stream>>>(prepared, query_tile, key_tile, rows, columns);
    check_launch("mask");
  }
  prepared.row_extremes = rows;
  prepared.key_extremes = columns;
  return {prepared, std::move(extremes)};
}

}  // namespace cpfit::kernels::cuda
