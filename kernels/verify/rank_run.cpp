#include "kernels/verify/rank_run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "kernels/core/require.h"
#include "kernels/verify/fixture.h"

namespace cpfit::kernels {

namespace {

std::vector<double> taken(const std::vector<double>& rows, const std::vector<std::int32_t>& index, std::int64_t columns) {
  std::vector<double> local;
  local.reserve(index.size() * static_cast<std::size_t>(columns));
  for (const std::int32_t row : index) {
    const auto begin = rows.begin() + row * columns;
    local.insert(local.end(), begin, begin + columns);
  }
  return local;
}

/// The five tensors of a result with the elements of one row of each.
std::array<std::pair<std::vector<double> AttentionTensors::*, std::int64_t>, 5> tensor_rows(const Heads& heads) {
  return {{{&AttentionTensors::out, std::int64_t{heads.q} * heads.v_dim},
           {&AttentionTensors::lse, heads.q},
           {&AttentionTensors::dq, std::int64_t{heads.q} * heads.qk_dim},
           {&AttentionTensors::dk, std::int64_t{heads.kv} * heads.qk_dim},
           {&AttentionTensors::dv, std::int64_t{heads.kv} * heads.v_dim}}};
}

constexpr std::array<std::vector<double> AttentionTensors::*, 5> kTensors = {
    &AttentionTensors::out, &AttentionTensors::lse, &AttentionTensors::dq, &AttentionTensors::dk, &AttentionTensors::dv};

std::string rank_file(const std::string& folder, std::int64_t index, std::int32_t rank) {
  return folder + "/case" + std::to_string(index) + ".rank" + std::to_string(rank) + ".bin";
}

}  // namespace

AttentionTensors run_rank(const Case& verified, Operators& operators, Transport& transport) {
  const Outcome<Method> method = method_of(verified);
  require(method.ok(), "a case of the unknown method '{}' was to be run", verified.method);
  const Layer layer = layer_of(verified);
  const Fixture fixture = fixture_of(verified);
  const std::vector<std::int32_t> queries = storage_rows(layer.queries, layer.mask, transport.rank());
  const std::vector<std::int32_t> keys = storage_rows(layer.keys, layer.mask, transport.rank());
  const auto upload = [&](const std::vector<double>& rows, const std::vector<std::int32_t>& index, std::int64_t columns) {
    return operators.upload(verified.number, static_cast<std::int64_t>(index.size()), columns, taken(rows, index, columns));
  };
  const Heads& heads = verified.heads;
  const Array q = upload(fixture.q, queries, std::int64_t{heads.q} * heads.qk_dim);
  const Array k = upload(fixture.k, keys, std::int64_t{heads.kv} * heads.qk_dim);
  const Array v = upload(fixture.v, keys, std::int64_t{heads.kv} * heads.v_dim);
  const Array dout = upload(fixture.dout, queries, std::int64_t{heads.q} * heads.v_dim);
  const Forward forward = attend(*method, layer, operators, transport, q, k, v);
  const Gradients gradients = attend_backward(*method, layer, operators, transport, forward, q, k, v, dout);
  AttentionTensors tensors;
  tensors.out = operators.download(forward.out);
  tensors.lse = operators.download(lse_of_shard(*method, layer, operators, transport, forward));
  tensors.dq = operators.download(gradients.dq);
  tensors.dk = operators.download(gradients.dk);
  tensors.dv = operators.download(gradients.dv);
  return tensors;
}

AttentionTensors unshard(const Case& verified, const std::vector<AttentionTensors>& ranks) {
  const Outcome<Method> method = method_of(verified);
  require(method.ok(), "results of the unknown method '{}' were to be put together", verified.method);
  const Layer layer = layer_of(verified);
  AttentionTensors whole;
  for (const auto& [tensor, columns] : tensor_rows(verified.heads)) {
    const bool by_key = tensor == &AttentionTensors::dk || tensor == &AttentionTensors::dv;
    const Cut& cut = by_key ? layer.keys : layer.queries;
    std::vector<double> rank_major;
    for (const AttentionTensors& rank : ranks) rank_major.insert(rank_major.end(), (rank.*tensor).begin(), (rank.*tensor).end());
    require(static_cast<std::int64_t>(rank_major.size()) == cut.tokens * columns,
            "the ranks of '{}' gave {} numbers for {} rows of {}", verified.name, rank_major.size(), cut.tokens, columns);
    whole.*tensor = taken(rank_major, result_rows(*method, cut, layer.mask), columns);
  }
  return whole;
}

void write_rank(const std::string& folder, std::int64_t index, std::int32_t rank, const AttentionTensors& tensors) {
  const std::string path = rank_file(folder, index, rank);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (const auto tensor : kTensors) {
    const std::vector<double>& values = tensors.*tensor;
    const std::uint64_t count = values.size();
    file.write(reinterpret_cast<const char*>(&count), sizeof count);
    file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(count * sizeof(double)));
  }
  file.close();
  if (!file) throw Error("cannot write the results of rank " + std::to_string(rank) + " to '" + path + "'");
}

AttentionTensors read_rank(const std::string& folder, std::int64_t index, std::int32_t rank) {
  const std::string path = rank_file(folder, index, rank);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("rank " + std::to_string(rank) + " left no results: '" + path + "' cannot be read");
  AttentionTensors tensors;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  for (const auto tensor : kTensors) {
    std::uint64_t count = 0;
    file.read(reinterpret_cast<char*>(&count), sizeof count);
    if (!file || count > kMost) throw Error("the results in '" + path + "' are cut short");
    (tensors.*tensor).resize(count);
    file.read(reinterpret_cast<char*>((tensors.*tensor).data()), static_cast<std::streamsize>(count * sizeof(double)));
    if (!file) throw Error("the results in '" + path + "' are cut short");
  }
  return tensors;
}

}  // namespace cpfit::kernels
