// Small tables with figures of our own, in the columns that published tables use.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "calibrate/read/published.h"

namespace cpfit::test {

/// One row by column name; every other common column is blank.
using Cells = std::map<std::string, std::string>;

inline std::string table_text(const std::vector<std::string>& columns, const std::vector<Cells>& rows) {
  std::string text;
  for (const auto& column : columns) text += (text.empty() ? "" : ",") + column;
  for (const Cells& row : rows) {
    text += '\n';
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) text += ',';
      if (const auto cell = row.find(columns[i]); cell != row.end()) text += '"' + cell->second + '"';
    }
  }
  return text + "\n";
}

/// The columns that all training tables share, then those of one source.
inline std::vector<std::string> training_columns(const std::vector<std::string>& own) {
  std::vector<std::string> columns = {"source",
                                      "source_location",
                                      "gpu",
                                      "gpu_mem_gb",
                                      "nodes_or_gpus",
                                      "interconnect",
                                      "framework",
                                      "model",
                                      "n_params",
                                      "layers",
                                      "hidden",
                                      "ffn_hidden",
                                      "heads",
                                      "kv_heads",
                                      "vocab",
                                      "seq_len",
                                      "micro_batch",
                                      "global_batch",
                                      "tp",
                                      "pp",
                                      "vpp",
                                      "cp",
                                      "cp_method",
                                      "dp",
                                      "ep",
                                      "sharding",
                                      "precision",
                                      "recompute",
                                      "step_time_s",
                                      "tokens_per_s_per_gpu",
                                      "tflops_per_gpu",
                                      "mfu",
                                      "peak_mem_gb"};
  columns.insert(columns.end(), own.begin(), own.end());
  columns.push_back("notes");
  return columns;
}

inline MeasuredTable read_rows(const std::vector<std::string>& columns, const std::vector<Cells>& rows) {
  auto table = read_published_text(table_text(columns, rows), "fixture.csv");
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : to_text(table.problems().front()));
  return table.ok() ? std::move(table).value() : MeasuredTable{};
}

inline double measured(const MeasuredRun& run, Metric metric) {
  for (const auto& [kind, value] : run.measured) {
    if (kind == metric) return value;
  }
  return -1;
}

}  // namespace cpfit::test
