#include "gui/look/figures.h"

#include <QLocale>
#include <cmath>

#include "model/quantity/percent.h"
#include "model/quantity/text.h"

namespace cpfit::gui {

namespace {

const QChar kMinus(0x2212);

QString with_true_minus(QString text) {
  if (text.startsWith(QLatin1Char('-'))) text[0] = kMinus;
  return text;
}

/// Digits behind the point that leave three significant ones.
int decimals_of(double magnitude) {
  if (magnitude >= 100.0) return 0;
  if (magnitude >= 10.0) return 1;
  if (magnitude >= 1.0 || magnitude == 0.0) return 2;
  return std::min(6, 2 - static_cast<int>(std::floor(std::log10(magnitude))));
}

QString fixed(double value) {
  QString text = QLocale::c().toString(value, 'f', decimals_of(std::abs(value)));
  if (text.contains(QLatin1Char('.'))) {
    while (text.endsWith(QLatin1Char('0'))) text.chop(1);
    if (text.endsWith(QLatin1Char('.'))) text.chop(1);
  }
  return with_true_minus(text);
}

template <class Print>
QString with_sign(double value, Print print) {
  const QString magnitude = print(std::abs(value));
  if (value == 0.0) return QStringLiteral("±0");
  return (value < 0.0 ? QString(kMinus) : QStringLiteral("+")) + magnitude;
}

}  // namespace

QString text_of(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }
std::string to_std(const QString& text) { return text.toStdString(); }

QString bytes_text(Bytes bytes) {
  const double magnitude = std::abs(bytes.value());
  if (magnitude >= kGiB) return fixed(bytes.value() / kGiB) + QStringLiteral(" GiB");
  if (magnitude >= kMiB) return fixed(bytes.value() / kMiB) + QStringLiteral(" MiB");
  if (magnitude >= kKiB) return fixed(bytes.value() / kKiB) + QStringLiteral(" KiB");
  return fixed(bytes.value()) + QStringLiteral(" B");
}

QString time_text(Seconds time) {
  const double magnitude = std::abs(time.value());
  if (magnitude >= 1.0 || magnitude == 0.0) return fixed(time.value()) + QStringLiteral(" s");
  if (magnitude >= 1e-3) return fixed(time.value() * 1e3) + QStringLiteral(" ms");
  if (magnitude >= 1e-6) return fixed(time.value() * 1e6) + QStringLiteral(" µs");
  return fixed(time.value() * 1e9) + QStringLiteral(" ns");
}

QString share_text(double share) { return with_true_minus(text_of(print_share(share))); }
QString rate_text(BytesPerSecond rate) { return with_true_minus(text_of(print_rate(rate))); }
QString tokens_text(std::int64_t tokens) { return text_of(print_tokens(Tokens(tokens))); }
QString count_text(std::int64_t count) { return with_true_minus(QLocale(QLocale::English).toString(qlonglong(count))); }

QString three_digits(double value) {
  if (std::abs(value) >= 1000.0) return count_text(static_cast<std::int64_t>(std::llround(value)));
  return fixed(value);
}

QString signed_bytes(Bytes bytes) {
  return with_sign(bytes.value(), [](double v) { return bytes_text(Bytes(v)); });
}
QString signed_time(Seconds time) {
  return with_sign(time.value(), [](double v) { return time_text(Seconds(v)); });
}
QString signed_share(double share) {
  if (is_tiny_share(share)) return share_text(share);
  return with_sign(share, [](double v) { return share_text(v); });
}

QString sentence_of(const Problem& problem) {
  QString text = text_of(problem.message);
  if (!problem.repair.empty()) text += QStringLiteral(" — ") + text_of(problem.repair);
  return text;
}

QString label_of(std::string_view key) {
  QString text = text_of(key);
  text.replace(QLatin1Char('_'), QLatin1Char(' '));
  if (!text.isEmpty()) text[0] = text[0].toUpper();
  return text;
}

QString csv_field(const QString& text) {
  if (!text.contains(QLatin1Char(',')) && !text.contains(QLatin1Char('"')) && !text.contains(QLatin1Char('\n'))) return text;
  QString quoted = text;
  quoted.replace(QLatin1Char('"'), QStringLiteral("\"\""));
  return QLatin1Char('"') + quoted + QLatin1Char('"');
}

}  // namespace cpfit::gui
