#include "gui/equivalence/verified_rows.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "gui/look/figures.h"

namespace cpfit::gui {

QStringList methods_of(CpComm exchange) {
  switch (exchange) {
    case CpComm::kP2p:
      return {QStringLiteral("te_p2p"), QStringLiteral("te_p2p_wide"), QStringLiteral("fp32_ring"),
              QStringLiteral("narrow_ring")};
    case CpComm::kAllGather:
      return {QStringLiteral("all_gather"), QStringLiteral("all_gather_wide")};
    case CpComm::kA2a:
      return {QStringLiteral("a2a"), QStringLiteral("a2a_repeat_kv")};
    case CpComm::kA2aP2p:
      return {QStringLiteral("a2a_p2p"), QStringLiteral("usp")};
    case CpComm::kDoubleRing:
      break;
  }
  return {QStringLiteral("double_ring"), QStringLiteral("double_ring_wide")};
}

QStringList masks_of_layers(const Architecture& model, const Training& training) {
  QStringList masks;
  switch (training.mask.kind) {
    case MaskKind::kCausal:
      masks = {QStringLiteral("causal")};
      break;
    case MaskKind::kFull:
      masks = {QStringLiteral("full")};
      break;
    case MaskKind::kSlidingWindow:
      masks = {QStringLiteral("window")};
      break;
    case MaskKind::kDocuments:
      masks = {QStringLiteral("documents")};
      break;
  }
  if (model.sliding_window > 0 && !masks.contains(QStringLiteral("window"))) masks.append(QStringLiteral("window"));
  return masks;
}

double nearness(const TensorError& error) {
  if (!error.judged) return 0.0;
  const auto share = [](double value, double limit) {
    if (std::isnan(value)) return std::numeric_limits<double>::infinity();
    return limit > 0.0 ? value / limit : value > 0.0 ? std::numeric_limits<double>::infinity() : 0.0;
  };
  return std::max(share(error.normwise, error.normwise_limit), share(error.largest, error.largest_limit));
}

double nearness(const VerifiedCase& one) {
  double most = 0.0;
  for (const TensorError& error : one.errors) most = std::max(most, nearness(error));
  return most;
}

std::vector<std::size_t> case_rows(const Verification& verification, const CaseFilter& filter) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < verification.cases.size(); ++i) {
    const VerifiedCase& one = verification.cases[i];
    if (filter.failed_only && one.passed) continue;
    if (!filter.methods.isEmpty() && !filter.methods.contains(text_of(one.method))) continue;
    if (!filter.masks.isEmpty() && !filter.masks.contains(text_of(one.mask))) continue;
    const QString all =
        QStringList{text_of(one.method), text_of(one.mask), text_of(one.shape), text_of(one.layout), text_of(one.dtype)}.join(
            QLatin1Char(' '));
    if (!all.contains(filter.text, Qt::CaseInsensitive)) continue;
    rows.push_back(i);
  }
  std::ranges::stable_sort(rows, [&](std::size_t a, std::size_t b) {
    const VerifiedCase &x = verification.cases[a], &y = verification.cases[b];
    if (x.passed != y.passed) return !x.passed;
    return nearness(x) > nearness(y);
  });
  return rows;
}

QString verified_sentence(const Verification& verification, const std::vector<std::size_t>& rows, const QString& of) {
  if (rows.empty()) return QObject::tr("No case%1 was verified here.").arg(of);
  std::size_t passed = 0;
  std::set<std::int32_t> degrees;
  for (const std::size_t row : rows) {
    passed += verification.cases[row].passed ? 1 : 0;
    degrees.insert(verification.cases[row].cp);
  }
  QStringList cps;
  for (const std::int32_t cp : degrees) cps.append(QString::number(cp));
  QString text =
      QObject::tr("%1 of %2 cases%3 passed, at CP %4").arg(passed).arg(rows.size()).arg(of, cps.join(QStringLiteral(", ")));
  if (!verification.controls.empty()) {
    const auto caught = std::ranges::count_if(verification.controls, &VerifiedControl::caught);
    text += caught == static_cast<std::ptrdiff_t>(verification.controls.size())
                ? QObject::tr("; all %1 planted faults were caught").arg(caught)
                : QObject::tr("; only %1 of %2 planted faults were caught, so that passing proves little")
                      .arg(caught)
                      .arg(verification.controls.size());
  }
  return text + QLatin1Char('.');
}

}  // namespace cpfit::gui
