#include "gui/timeline/span_text.h"

#include <QCoreApplication>

#include "gui/look/figures.h"
#include "gui/timeline/span_flow.h"
#include "gui/timeline/time_axis.h"

namespace cpfit::gui {

namespace {

struct Words {
  Q_DECLARE_TR_FUNCTIONS(cpfit::gui::SpanText)
};

const std::string& name_of_span(const StepPicture& picture, const LaneSpan& span) {
  return picture.timeline.names[static_cast<std::size_t>(span.name)];
}

QString rank_text(const StepPicture& picture, std::int32_t index) {
  const PictureRank& rank = picture.ranks[static_cast<std::size_t>(index)];
  return rank.title.empty() ? Words::tr("rank %1").arg(static_cast<qlonglong>(rank.rank)) : text_of(rank.title);
}

bool is_message(const LaneSpan& span) { return span.peer >= 0; }

/// What a ring message carries.
QString cargo(const std::string& name) {
  if (name.find("kv dkv") != std::string::npos) return QStringLiteral("KV+dKV");
  if (name.find("dkv") != std::string::npos) return QStringLiteral("dKV");
  if (name.find("kv") != std::string::npos) return QStringLiteral("KV");
  return text_of(name);
}

QString peer_text(const StepPicture& picture, const LaneSpan& span) {
  return QString::number(static_cast<qlonglong>(picture.cluster_rank(span.peer)));
}

/// "step 5 of 8", empty for what has no number.
QString step_text(const StepPicture& picture, const LaneSpan& span) {
  const std::int32_t number = number_of(name_of_span(picture, span));
  if (number < 0) return {};
  return Words::tr("step %1 of %2").arg(number + 1).arg(picture.ring_steps[static_cast<std::size_t>(span.name)]);
}

}  // namespace

QString duration_text(std::int64_t picoseconds) { return time_text(Seconds(static_cast<double>(picoseconds) * 1e-12)); }

QString kind_title(SpanKind kind) {
  switch (kind) {
    case SpanKind::kAttention:
      return Words::tr("attention");
    case SpanKind::kCompute:
      return Words::tr("other compute");
    case SpanKind::kOptimizer:
      return Words::tr("optimizer");
    case SpanKind::kCp:
      return Words::tr("ring (CP)");
    case SpanKind::kTp:
      return QStringLiteral("TP");
    case SpanKind::kPp:
      return QStringLiteral("PP");
    case SpanKind::kDp:
      return QStringLiteral("DP");
    case SpanKind::kForeign:
      return Words::tr("another job");
    case SpanKind::kOther:
      break;
  }
  return Words::tr("other");
}

std::vector<QString> span_labels(const StepPicture& picture, SpanRef ref) {
  const LaneSpan& span = span_of(picture, ref);
  const std::string& name = name_of_span(picture, span);
  const std::int32_t number = number_of(name);
  if (is_message(span)) {
    const QString arrow = span.sends ? QStringLiteral(" → ") : QStringLiteral(" ← ");
    const QString peer = peer_text(picture, span);
    return {cargo(name) + arrow + peer, arrow.trimmed() + peer};
  }
  if (number >= 0) {
    const QString count = QStringLiteral("%1/%2").arg(number + 1).arg(picture.ring_steps[static_cast<std::size_t>(span.name)]);
    if (span.kind == SpanKind::kAttention) return {Words::tr("attention %1").arg(count), Words::tr("attn %1").arg(count), count};
    return {text_of(name.substr(0, name.find_last_of(' '))) + QLatin1Char(' ') + count, count};
  }
  return {text_of(name)};
}

QString span_sentence(const StepPicture& picture, SpanRef ref) {
  const LaneSpan& span = span_of(picture, ref);
  const SpanLane& lane = picture.lane(ref.lane);
  QStringList parts;
  parts << rank_text(picture, lane.rank);
  parts << text_of(lane_title(lane));
  const std::string& name = name_of_span(picture, span);
  const QString step = step_text(picture, span);
  if (is_message(span)) {
    const QString what = step.isEmpty() ? cargo(name) : Words::tr("%1 of %2").arg(cargo(name), step);
    parts << (span.sends ? Words::tr("%1 to rank %2") : Words::tr("%1 from rank %2")).arg(what, peer_text(picture, span));
  } else if (!step.isEmpty()) {
    parts << text_of(name.substr(0, name.find_last_of(' '))) + QLatin1Char(' ') + step;
  } else {
    parts << text_of(name);
  }
  if (picture.marked(ref.lane, ref.span, kRecomputed)) parts << Words::tr("recomputed");
  if (span.layer >= 0) parts << Words::tr("layer %1").arg(span.layer);
  if (span.micro_batch >= 0) parts << Words::tr("micro-batch %1").arg(span.micro_batch);
  parts << text_of(cpfit::name_of(span.pass));
  QString time = duration_text(span.end - span.start);
  if (span.exposed > 0) time += Words::tr(", of which %1 exposed").arg(duration_text(span.exposed));
  parts << time;
  return parts.join(QStringLiteral(", "));
}

std::vector<SpanFact> span_facts(const StepPicture& picture, SpanRef ref) {
  const LaneSpan& span = span_of(picture, ref);
  const SpanLane& lane = picture.lane(ref.lane);
  std::vector<SpanFact> facts;
  const std::int64_t length = span.end - span.start;
  const QString step = step_text(picture, span);
  facts.push_back({Words::tr("what"), text_of(name_of_span(picture, span)) +
                                          (step.isEmpty() ? QString() : QStringLiteral(" (") + step + QLatin1Char(')'))});
  facts.push_back({Words::tr("where"), rank_text(picture, lane.rank) + QStringLiteral(", ") + text_of(lane_title(lane))});
  QString place = text_of(cpfit::name_of(span.pass));
  if (span.layer >= 0) place += Words::tr(", layer %1").arg(span.layer);
  if (span.micro_batch >= 0) place += Words::tr(", micro-batch %1").arg(span.micro_batch);
  facts.push_back({Words::tr("part"), place});
  facts.push_back({Words::tr("begins"), text_of(print_instant(span.start, std::max<std::int64_t>(1, length / 100)))});
  facts.push_back({Words::tr("takes"), duration_text(length)});
  if (is_message(span))
    facts.push_back({span.sends ? Words::tr("to") : Words::tr("from"), Words::tr("rank %1").arg(peer_text(picture, span))});
  if (span.bytes > 0) {
    facts.push_back({Words::tr("moves"), bytes_text(Bytes(span.bytes))});
    if (length > 0)
      facts.push_back({Words::tr("at"), rate_text(BytesPerSecond(span.bytes / (static_cast<double>(length) * 1e-12)))});
  }
  const bool communicates = family_of(lane) != LaneFamily::kCompute && span.bytes > 0;
  if (communicates)
    facts.push_back({Words::tr("exposed"), span.exposed > 0 ? duration_text(span.exposed) : Words::tr("none, hidden")});
  if (span.start > span.posted)
    facts.push_back({Words::tr("waited"), Words::tr("%1 for its peer").arg(duration_text(span.start - span.posted))});
  if (picture.marked(ref.lane, ref.span, kRecomputed)) facts.push_back({Words::tr("repeats"), Words::tr("forward (recompute)")});
  if (picture.marked(ref.lane, ref.span, kCritical))
    facts.push_back({Words::tr("critical"), Words::tr("yes: a shorter one shortens the step")});
  return facts;
}

QString range_sentence(const StepPicture& picture, std::int32_t rank, const RangeSums& sums) {
  return Words::tr("%1 on %2: compute %3, hidden %4, exposed %5, idle %6, %7 moved")
      .arg(duration_text(sums.range.length()), rank_text(picture, rank))
      .arg(duration_text(sums.compute), duration_text(sums.hidden()), duration_text(sums.exposed), duration_text(sums.idle),
           bytes_text(Bytes(sums.bytes)));
}

QString picture_sentence(const StepPicture& picture) {
  std::size_t shown = 0;
  for (const PictureRank& rank : picture.ranks) shown += rank.lanes.empty() ? 0 : 1;
  const PictureRank& last = picture.ranks[static_cast<std::size_t>(picture.last_rank)];
  return Words::tr("Step of %1, %2 ranks, %3 spans; rank %4 ends last, %5 of its communication is exposed")
      .arg(duration_text(picture.timeline.step), count_text(static_cast<std::int64_t>(shown)),
           count_text(static_cast<std::int64_t>(picture.spans())), QString::number(static_cast<qlonglong>(last.rank)),
           duration_text(last.exposed));
}

}  // namespace cpfit::gui
