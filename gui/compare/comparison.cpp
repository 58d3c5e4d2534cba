#include "gui/compare/comparison.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "gui/look/figures.h"
#include "gui/study/recipe_values.h"
#include "model/record/lane.h"

namespace cpfit::gui {

namespace {

constexpr double kPicoseconds = 1e12;

QString label_for(const std::string& key) {
  const Parameter* parameter = find_parameter(key);
  return parameter != nullptr ? text_of(parameter->label) : label_of(key);
}

/// Tokens of one optimizer step over all replicas.
std::int64_t token_batch(const Training& training) { return training.sequence.count() * training.global_batch; }

QString hardware_text(const Cluster& cluster) {
  return QObject::tr("%1 GPUs %2 on %3 of %4")
      .arg(cluster.gpus())
      .arg(text_of(cluster.gpu.name))
      .arg(cluster.nodes == 1 ? QObject::tr("1 node") : QObject::tr("%1 nodes").arg(cluster.nodes))
      .arg(text_of(cluster.name));
}

QString rates_text(const Design& design) {
  return design.calibration == nullptr ? QObject::tr("defaults") : text_of(design.calibration->calibration.name);
}

struct NamedPart {
  QString name;
  double a = 0, b = 0;  // in the whole unit
  int color = 0;
  bool exposed = false;
};

std::vector<WaterfallRow> waterfall(const std::vector<NamedPart>& parts, const QString& name_a, const QString& name_b) {
  std::vector<double> of_a, of_b;
  for (const NamedPart& part : parts) {
    of_a.push_back(part.a);
    of_b.push_back(part.b);
  }
  const std::vector<std::int64_t> a = whole_parts(of_a), b = whole_parts(of_b);
  const std::int64_t total_a = std::accumulate(a.begin(), a.end(), std::int64_t{0});
  const std::int64_t total_b = std::accumulate(b.begin(), b.end(), std::int64_t{0});
  std::vector<WaterfallRow> rows;
  rows.push_back({name_a, PartKind::kTotal, 0, total_a, total_a, total_a, 0, false});
  std::int64_t level = total_a;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (a[i] == 0 && b[i] == 0) continue;
    rows.push_back({parts[i].name, PartKind::kPart, level, level + b[i] - a[i], a[i], b[i], parts[i].color, parts[i].exposed});
    level = rows.back().to;
  }
  rows.push_back({name_b, PartKind::kTotal, 0, total_b, total_b, total_b, 0, false});
  return rows;
}

std::vector<NamedPart> time_parts(const TimeBreakdown& a, const TimeBreakdown& b) {
  const auto part = [&](const char* name, Seconds TimeBreakdown::* field, SpanKind kind, bool exposed) {
    return NamedPart{QObject::tr(name), (a.*field).value() * kPicoseconds, (b.*field).value() * kPicoseconds,
                     static_cast<int>(kind), exposed};
  };
  return {part("compute", &TimeBreakdown::compute, SpanKind::kCompute, false),
          part("exposed CP", &TimeBreakdown::exposed_cp, SpanKind::kCp, true),
          part("exposed TP", &TimeBreakdown::exposed_tp, SpanKind::kTp, true),
          part("exposed PP", &TimeBreakdown::exposed_pp, SpanKind::kPp, true),
          part("exposed DP", &TimeBreakdown::exposed_dp, SpanKind::kDp, true),
          part("pipeline bubble", &TimeBreakdown::bubble, SpanKind::kPp, false),
          part("kernel launches", &TimeBreakdown::launch, SpanKind::kOther, false),
          part("optimizer", &TimeBreakdown::optimizer, SpanKind::kOptimizer, false),
          part("other", &TimeBreakdown::other, SpanKind::kOther, false)};
}

}  // namespace

Seconds seconds_of(std::int64_t picoseconds) { return Seconds(static_cast<double>(picoseconds) / kPicoseconds); }

std::vector<std::int64_t> whole_parts(const std::vector<double>& parts) {
  std::vector<std::int64_t> whole;
  std::int64_t given = 0;
  for (const double part : parts) {
    whole.push_back(std::llround(part));
    given += whole.back();
  }
  if (parts.empty()) return whole;
  const std::int64_t sum = std::llround(std::accumulate(parts.begin(), parts.end(), 0.0));
  whole[static_cast<std::size_t>(std::ranges::max_element(parts) - parts.begin())] += sum - given;
  return whole;
}

std::vector<WaterfallRow> time_waterfall(const ComparedSide& a, const ComparedSide& b) {
  return waterfall(time_parts(a.candidate.time, b.candidate.time), a.name, b.name);
}

std::vector<WaterfallRow> memory_waterfall(const ComparedSide& a, const ComparedSide& b) {
  std::vector<NamedPart> parts;
  for (int i = 0; i < kComponentCount; ++i) {
    const auto at = static_cast<std::size_t>(i);
    parts.push_back({label_of(name_of(static_cast<Component>(i))), a.candidate.memory.components[at].value(),
                     b.candidate.memory.components[at].value(), i, false});
  }
  return waterfall(parts, a.name, b.name);
}

QStringList unequal_reasons(const ComparedSide& a, const ComparedSide& b) {
  const Scenario &sa = *a.design.scenario, &sb = *b.design.scenario;
  QStringList reasons;
  if (!(sa.model == sb.model))
    reasons.append(QObject::tr("the model differs: %1 against %2")
                       .arg(value_of(a.design, "model").c_str(), value_of(b.design, "model").c_str()));
  if (token_batch(sa.training) != token_batch(sb.training)) {
    reasons.append(QObject::tr("the effective token batch differs: %1 against %2 tokens per step")
                       .arg(count_text(token_batch(sa.training)), count_text(token_batch(sb.training))));
  }
  if (!(a.design.recipe.recompute == b.design.recipe.recompute)) {
    reasons.append(QObject::tr("recompute differs: %1 against %2; what it frees or costs is not a gain of CP")
                       .arg(text_of(to_text(a.design.recipe.recompute)), text_of(to_text(b.design.recipe.recompute))));
  }
  if (!same_hardware(sa.cluster, sb.cluster)) {
    reasons.append(QObject::tr("the hardware differs: %1 against %2").arg(hardware_text(sa.cluster), hardware_text(sb.cluster)));
  }
  if (a.design.calibration != b.design.calibration)
    reasons.append(QObject::tr("the rates differ: %1 against %2").arg(rates_text(a.design), rates_text(b.design)));
  return reasons;
}

std::vector<InputDifference> input_differences(const ComparedSide& a, const ComparedSide& b) {
  std::vector<InputDifference> found;
  const Scenario &sa = *a.design.scenario, &sb = *b.design.scenario;
  const auto add = [&](const QString& group, const QString& name, const QString& left, const QString& right, bool unequal,
                       bool policy = false) {
    if (left != right) found.push_back({group, name, left, right, unequal, policy});
  };
  const QString question = QObject::tr("Question"), recipe = QObject::tr("Recipe");
  for (const char* key : {"model", "cluster", "nodes"})
    add(question, label_for(key), text_of(value_of(a.design, key)), text_of(value_of(b.design, key)), true);
  if (!same_hardware(sa.cluster, sb.cluster) && found.empty())
    add(question, QObject::tr("Links"), hardware_text(sa.cluster), hardware_text(sb.cluster) + QObject::tr(", edited"), true);
  const bool batch = token_batch(sa.training) != token_batch(sb.training);
  for (const char* key : {"sequence_length", "global_batch"})
    add(question, label_for(key), text_of(value_of(a.design, key)), text_of(value_of(b.design, key)), batch);
  add(question, QObject::tr("Tokens per step"), count_text(token_batch(sa.training)), count_text(token_batch(sb.training)), true);
  if (a.design.calibration != b.design.calibration)
    add(question, QObject::tr("Rates"), rates_text(a.design), rates_text(b.design), true);
  for (const std::string& key : differences(a.design.recipe, b.design.recipe))
    add(recipe, label_for(key), text_of(recipe_value(a.design.recipe, key)), text_of(recipe_value(b.design.recipe, key)),
        key == "recompute", is_policy_field(key));
  return found;
}

QString comparison_sentence(const ComparedSide& a, const ComparedSide& b) {
  const Seconds time = b.candidate.time.step() - a.candidate.time.step();
  const Bytes memory = b.candidate.memory.device - a.candidate.memory.device;
  if (time.value() == 0.0 && memory.value() == 0.0)
    return QObject::tr("%1 and %2 take the same time and memory.").arg(a.name, b.name);
  QString text = time.value() == 0.0 ? QObject::tr("%1 takes as long as %2").arg(b.name, a.name)
                                     : QObject::tr("%1 is %2 %3 than %4 (%5)")
                                           .arg(b.name, time_text(Seconds(std::abs(time.value()))),
                                                time.value() < 0.0 ? QObject::tr("faster") : QObject::tr("slower"), a.name,
                                                signed_share(time / a.candidate.time.step()));
  text += memory.value() == 0.0 ? QObject::tr(" and needs as much memory")
                                : QObject::tr(" and needs %1 %2")
                                      .arg(bytes_text(Bytes(std::abs(memory.value()))),
                                           memory.value() < 0.0 ? QObject::tr("less") : QObject::tr("more"));
  // The part that moves most in the direction of the whole.
  const std::vector<WaterfallRow> rows = time_waterfall(a, b);
  const WaterfallRow* most = nullptr;
  for (const WaterfallRow& row : rows) {
    if (row.kind == PartKind::kTotal || (row.change() < 0) != (time.value() < 0.0) || row.change() == 0) continue;
    if (most == nullptr || std::abs(row.change()) > std::abs(most->change())) most = &row;
  }
  if (most != nullptr) text += QObject::tr("; most by %1, %2").arg(most->name, signed_time(seconds_of(most->change())));
  return text + QLatin1Char('.');
}

}  // namespace cpfit::gui
