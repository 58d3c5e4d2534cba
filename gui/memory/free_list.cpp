#include "gui/memory/free_list.h"

#include <algorithm>
#include <array>

#include "gui/look/figures.h"
#include "gui/study/recipe_values.h"

namespace cpfit::gui {

namespace {

constexpr std::array kKeys = {"recompute", "cp", "tp", "pp", "micro_batch", "state_sharding", "cp_comm", "vpp"};

}  // namespace

std::vector<FreeingChange> freeing_changes(const Estimate& estimate,
                                           const std::map<std::string, std::vector<Variation>>& variations) {
  std::vector<FreeingChange> changes;
  if (!estimate.legal()) return changes;
  const Bytes now = estimate.candidate->memory.device;
  const Seconds step = estimate.candidate->time.step();
  for (const char* key : kKeys) {
    const auto found = variations.find(key);
    if (found == variations.end()) continue;
    const Variation* most = nullptr;
    const Variation* cheapest = nullptr;
    for (const Variation& v : found->second) {
      if (!v.legal || v.current || v.device >= now) continue;
      if (most == nullptr || v.device < most->device) most = &v;
      if (v.fit == Fit::kFits && (cheapest == nullptr || v.step < cheapest->step)) cheapest = &v;
    }
    const Variation* none = nullptr;
    for (const Variation* v : {cheapest, most == cheapest ? none : most}) {
      if (v == nullptr) continue;
      FreeingChange change;
      change.key = key;
      change.value = v->value;
      change.text = QStringLiteral("%1 %2 → %3")
                        .arg(text_of(find_parameter(key)->label), text_of(value_of(estimate.design, key)), text_of(v->value));
      change.freed = now - v->device;
      change.slower = v->step / step - 1.0;
      change.fit = v->fit;
      if (is_policy_field(key)) change.caution = QObject::tr("a change of policy, not a gain of CP");
      changes.push_back(std::move(change));
    }
  }
  std::ranges::stable_sort(changes, [](const FreeingChange& a, const FreeingChange& b) {
    const bool fa = a.fit == Fit::kFits, fb = b.fit == Fit::kFits;
    return fa != fb ? fa : a.freed > b.freed;
  });
  return changes;
}

void FreeList::set_changes(std::vector<FreeingChange> changes) {
  beginResetModel();
  changes_ = std::move(changes);
  endResetModel();
}

int FreeList::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(changes_.size()); }
int FreeList::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : 4; }

QVariant FreeList::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const FreeingChange& change = changes_[static_cast<std::size_t>(index.row())];
  if (role == Qt::TextAlignmentRole && (index.column() == 1 || index.column() == 2))
    return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole) {
    const QString apply = QObject::tr("Enter or double-click applies it; Ctrl+Z takes it back.");
    return change.caution.isEmpty() ? apply : apply + QLatin1Char('\n') + QObject::tr("Careful: %1.").arg(change.caution);
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case 0:
      return change.caution.isEmpty() ? change.text : change.text + QStringLiteral("  ≠");
    case 1:
      return bytes_text(change.freed);
    case 2:
      return signed_share(change.slower);
    default:
      return change.fit == Fit::kFits ? tr("fits") : change.fit == Fit::kAtRisk ? tr("at risk") : tr("still too much");
  }
}

QVariant FreeList::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  const QString names[] = {tr("Change"), tr("Frees"), tr("Step"), tr("Then")};
  return section >= 0 && section < 4 ? names[section] : QVariant();
}

}  // namespace cpfit::gui
