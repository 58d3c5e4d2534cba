// What a stored verification says of a recipe's attention: which cases speak of its exchange and mask, in one order, and in how
// many words they agree. Pure.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <vector>

#include "gui/study/design.h"
#include "model/record/verification.h"

namespace cpfit::gui {

/// Orders of computation that carry out an exchange, as `cpfit verify` names them; which of them a framework runs is its rule
/// set's business.
[[nodiscard]] QStringList methods_of(CpComm exchange);
/// Masks that the layers of a model see under a training.
[[nodiscard]] QStringList masks_of_layers(const Architecture& model, const Training& training);

struct CaseFilter {
  QStringList methods, masks;  // empty: all
  QString text;                // contained in method, mask, shape, layout or number type
  bool failed_only = false;
};
/// Places in `verification.cases`: failed first, then by how near the worst error comes to its limit.
[[nodiscard]] std::vector<std::size_t> case_rows(const Verification& verification, const CaseFilter& filter);

/// The largest error over its limit, of the tensors that were judged; above 1 it failed. Infinite where a number is none.
[[nodiscard]] double nearness(const VerifiedCase& one);
[[nodiscard]] double nearness(const TensorError& error);

/// "48 of 48 cases of p2p under a causal mask passed, at CP 2, 4 and 8; all 11 planted faults were caught."
[[nodiscard]] QString verified_sentence(const Verification& verification, const std::vector<std::size_t>& rows,
                                        const QString& of);

}  // namespace cpfit::gui
