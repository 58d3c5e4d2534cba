// What a ledger line says beside its bytes. The walks over the tensors (layer_tensors.h, cp_tensors.h, stage_tensors.h) hand
// every tensor to a sink as (text, bytes): a sink that sums ignores the text, a sink that lists keeps it.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "model/memory/ledger.h"

namespace cpfit {

struct TensorText {
  Component component;
  std::string_view tensor;
  std::string_view formula;  // bytes, in the symbols of cp_model.md section 0; h_q, h_kv, F, V on the rank
  std::string_view source;
};

/// Adds up all bytes. Walks that are linear in the number of layers may hand it unit sums instead (kTotalsOnly).
struct TotalSink {
  static constexpr bool kTotalsOnly = true;
  double total = 0.0;
  void operator()(const TensorText&, double bytes) { total += bytes; }
};

/// Adds up by component.
struct ComponentSink {
  static constexpr bool kTotalsOnly = false;
  std::array<double, kComponentCount> bytes{};
  void operator()(const TensorText& text, double amount) { bytes[static_cast<std::size_t>(text.component)] += amount; }
};

/// Keeps every line that has bytes.
struct ListSink {
  static constexpr bool kTotalsOnly = false;
  std::vector<LedgerEntry>& entries;
  void operator()(const TensorText& text, double bytes) {
    if (bytes != 0.0) entries.push_back({text.component, text.tensor, text.formula, text.source, Bytes(bytes)});
  }
};

}  // namespace cpfit
