#include "model/rates/overlay.h"

#include <algorithm>
#include <cstdio>

#include "model/rates/gpu_rates.h"

namespace cpfit {

namespace {

std::string number(double value) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string span(const char* axis, const FittedRange& range) {
  return std::string(axis) + " " + number(range.low) + "-" + number(range.high);
}

template <class Value>
std::string word(Value value) {
  return std::string(name_of(value));
}

std::string sizes(const CollectiveCurve& curve) {
  if (curve.piece_count == 0) return "";
  const CollectivePiece& last = curve.pieces[static_cast<std::size_t>(curve.piece_count - 1)];
  return span("bytes", {curve.pieces[0].from, last.to}) + ", " + std::to_string(curve.piece_count) +
         (curve.piece_count == 1 ? " piece" : " pieces");
}

/// Rows of `over`, then those of `base` whose key is not among them.
template <class Row, class Same>
std::vector<Row> merged(const std::vector<Row>& base, const std::vector<Row>& over, Same same) {
  std::vector<Row> rows = over;
  for (const Row& row : base) {
    if (std::none_of(over.begin(), over.end(), [&](const Row& other) { return same(row, other); })) rows.push_back(row);
  }
  return rows;
}

template <class Row, class Keep>
void take(const std::vector<Row>& from, std::vector<Row>& to, Keep keep) {
  std::copy_if(from.begin(), from.end(), std::back_inserter(to), keep);
}

}  // namespace

std::vector<Surface> surfaces_of(const RateTables& tables) {
  std::vector<Surface> surfaces;
  for (const GemmRow& row : tables.gemm) {
    const GemmCurve& c = row.curve;
    surfaces.push_back(
        {row.gpu, "gemm " + word(row.math), span("m", c.m) + ", " + span("n", c.n) + ", " + span("k", c.k), c.quality});
  }
  for (const AttentionRow& row : tables.attention) {
    const AttentionCurve& c = row.curve;
    surfaces.push_back({row.gpu, "attention " + word(row.library) + " " + word(row.math) + " " + word(row.pass),
                        span("q", c.q_len) + ", " + span("kv", c.kv_len) + ", " + span("heads", c.heads), c.quality});
  }
  for (const MemoryRow& row : tables.memory) {
    surfaces.push_back(
        {row.gpu, "memory " + row.kernels + " " + word(row.pass), span("bytes", row.curve.traffic), row.curve.quality});
  }
  for (const CollectiveRow& row : tables.collective) {
    const std::string form = row.form == CollectiveForm::kUsual ? "" : ", " + word(row.form);
    surfaces.push_back(
        {row.link, word(row.kind) + " on " + std::to_string(row.curve.ranks) + form, sizes(row.curve), row.curve.quality});
  }
  for (const LinkRow& row : tables.link) surfaces.push_back({row.link, "message", "", row.curve.quality});
  for (const TrainingRow& row : tables.training) {
    std::string name = "kernels in training";
    if (row.math) name += " " + word(*row.math);
    if (row.library) name += " " + word(*row.library);
    surfaces.push_back({row.generation.empty() ? "all" : row.generation, name, "", row.quality});
  }
  for (const LaunchRow& row : tables.launch) {
    surfaces.push_back({row.generation.empty() ? "all" : row.generation, "kernel launch", "", row.quality});
  }
  for (const OverlapRow& row : tables.overlap) {
    surfaces.push_back(
        {row.link, "slowdown beside messages" + (row.generation.empty() ? "" : " " + row.generation), "", row.quality});
  }
  return surfaces;
}

RateTables rows_for(const RateTables& measured, const Gpu& gpu) {
  RateTables rows;
  rows.version = measured.version;
  const std::vector<std::string> links = links_of(gpu);
  const auto own_gpu = [&](const auto& row) { return row.gpu == gpu.name; };
  const auto own_link = [&](const auto& row) { return std::find(links.begin(), links.end(), row.link) != links.end(); };
  const auto own_generation = [&](const auto& row) {
    return row.generation.empty() || generation_rank(row.generation) == generation_rank(gpu.generation);
  };
  take(measured.devices, rows.devices, own_gpu);
  take(measured.gemm, rows.gemm, own_gpu);
  take(measured.attention, rows.attention, own_gpu);
  take(measured.memory, rows.memory, own_gpu);
  take(measured.collective, rows.collective, own_link);
  take(measured.link, rows.link, own_link);
  take(measured.training, rows.training, own_generation);
  take(measured.launch, rows.launch, own_generation);
  take(measured.overlap, rows.overlap, [&](const OverlapRow& row) {
    // Slowdowns are kept by family: "nvlink" for every NVLink.
    const bool link =
        std::any_of(links.begin(), links.end(), [&](const std::string& name) { return name.starts_with(row.link); });
    return link && own_generation(row);
  });
  return rows;
}

RateTables overlaid(const RateTables& base, const RateTables& over) {
  RateTables rows;
  rows.version = over.version.empty() ? base.version : over.version + " over " + base.version;
  rows.devices = merged(base.devices, over.devices, [](const auto& a, const auto& b) { return a.gpu == b.gpu; });
  rows.gemm = merged(base.gemm, over.gemm, [](const auto& a, const auto& b) { return a.gpu == b.gpu && a.math == b.math; });
  rows.attention = merged(base.attention, over.attention, [](const auto& a, const auto& b) {
    return a.gpu == b.gpu && a.library == b.library && a.math == b.math && a.pass == b.pass;
  });
  rows.memory = merged(base.memory, over.memory,
                       [](const auto& a, const auto& b) { return a.gpu == b.gpu && a.kernels == b.kernels && a.pass == b.pass; });
  rows.collective = merged(base.collective, over.collective, [](const auto& a, const auto& b) {
    return a.link == b.link && a.kind == b.kind && a.form == b.form && a.curve.ranks == b.curve.ranks;
  });
  rows.link = merged(base.link, over.link, [](const auto& a, const auto& b) { return a.link == b.link; });
  rows.training = merged(base.training, over.training, [](const auto& a, const auto& b) {
    return a.generation == b.generation && a.math == b.math && a.library == b.library;
  });
  rows.launch = merged(base.launch, over.launch, [](const auto& a, const auto& b) { return a.generation == b.generation; });
  rows.overlap = merged(base.overlap, over.overlap,
                        [](const auto& a, const auto& b) { return a.link == b.link && a.generation == b.generation; });
  return rows;
}

bool empty(const RateTables& tables) {
  return tables.gemm.empty() && tables.attention.empty() && tables.memory.empty() && tables.collective.empty() &&
         tables.link.empty() && tables.training.empty() && tables.launch.empty() && tables.overlap.empty();
}

}  // namespace cpfit
