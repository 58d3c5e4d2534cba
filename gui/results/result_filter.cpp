#include "gui/results/result_filter.h"

#include <QCoreApplication>
#include <QObject>
#include <algorithm>
#include <cmath>

#include "gui/look/figures.h"
#include "model/quantity/text.h"

namespace cpfit::gui {

namespace {

Problem filter_problem(const char* code, const QString& where, const QString& message, const QString& repair) {
  return {code, to_std(where), to_std(message), to_std(repair)};
}

QString known_fields() {
  QStringList keys;
  for (const ResultField& field : result_fields()) keys.append(text_of(field.key));
  return keys.join(QStringLiteral(", "));
}

/// A figure in the field's unit: "800ms" of seconds is 0.8.
std::optional<double> figure_in(const QString& text, std::string_view unit) {
  QString number = text.trimmed();
  struct Scale {
    const char* suffix;
    std::string_view unit;
    double factor;
  };
  static constexpr Scale kScales[] = {
      {"ms", "s", 1e-3},          {"µs", "s", 1e-6},      {"us", "s", 1e-6},   {"min", "s", 60.0},        {"s", "s", 1.0},
      {"MiB", "GiB", 1.0 / 1024}, {"TiB", "GiB", 1024.0}, {"GiB", "GiB", 1.0}, {"GB", "GiB", 1e9 / kGiB}, {"%", "%", 1.0}};
  double factor = 1.0;
  for (const Scale& scale : kScales) {
    if (!number.endsWith(QString::fromUtf8(scale.suffix), Qt::CaseInsensitive)) continue;
    if (scale.unit != unit) return std::nullopt;
    factor = scale.factor;
    number.chop(QString::fromUtf8(scale.suffix).size());
    break;
  }
  bool fine = false;
  const double value = number.trimmed().toDouble(&fine);
  return fine ? std::optional(value * factor) : std::nullopt;
}

/// The figure with the sign that makes less better.
double costs(double value, Better better) { return better == Better::kMore ? -value : value; }

bool term_passes(const FilterTerm& term, double value) {
  if (!term.values.empty()) return std::ranges::find(term.values, value) != term.values.end();
  return value >= term.low && value <= term.high;
}

/// The term with the set's own places for its words; nothing passes where it knows none of them.
FilterTerm resolved_term(const FilterTerm& term, const ResultColumn& column) {
  FilterTerm resolved = term;
  if (term.words.isEmpty()) return resolved;
  resolved.values.clear();
  for (const QString& word : term.words) {
    for (qsizetype i = 0; i < column.vocabulary.size(); ++i) {
      if (column.vocabulary[i].compare(word, Qt::CaseInsensitive) == 0) resolved.values.push_back(static_cast<double>(i));
    }
  }
  if (resolved.values.empty()) resolved.values.push_back(-1.0);
  return resolved;
}

}  // namespace

Outcome<FilterTerm> parse_term(const QString& text) {
  static constexpr std::array kOperators = {"<=", ">=", "≤", "≥", "<", ">", "=", ":"};
  qsizetype at = -1;
  QString sign;
  for (const char* candidate : kOperators) {
    const QString op = QString::fromUtf8(candidate);
    const qsizetype found = text.indexOf(op);
    if (found > 0 && (at < 0 || found < at)) {
      at = found;
      sign = op;
    }
  }
  if (at < 0) {
    return Problems{filter_problem("filter.form", text, QObject::tr("'%1' has no comparison").arg(text),
                                   QObject::tr("write cp>=4, memory<70GiB, recompute=none|full"))};
  }
  const QString key = text.left(at).trimmed().toLower();
  FilterTerm term;
  term.field = field_named(to_std(key));
  if (term.field == kNoField) {
    return Problems{filter_problem("filter.field", text, QObject::tr("there is no field '%1'").arg(key),
                                   QObject::tr("one of %1").arg(known_fields()))};
  }
  const ResultField& field = result_fields()[term.field];
  const QStringList parts = text.mid(at + sign.size()).split(QLatin1Char('|'), Qt::SkipEmptyParts);
  const bool equal = sign == QLatin1String("=") || sign == QLatin1String(":");
  if (parts.isEmpty() || (!equal && (parts.size() > 1 || field.word))) {
    return Problems{filter_problem("filter.value", text, QObject::tr("'%1' does not compare with one value").arg(text),
                                   field.word ? QObject::tr("write %1=word, several with |").arg(key)
                                              : QObject::tr("write %1=1|2 for several values").arg(key))};
  }
  for (const QString& part : parts) {
    if (field.word) {
      term.words.append(part.trimmed());
      continue;
    }
    const std::optional<double> value = figure_in(part, field.unit);
    if (!value) {
      return Problems{
          filter_problem("filter.value", text,
                         QObject::tr("'%1' is no figure in %2")
                             .arg(part.trimmed(), field.unit.empty() ? QObject::tr("whole numbers") : text_of(field.unit)),
                         QObject::tr("write a number with the unit of the column, or none"))};
    }
    const double infinity = std::numeric_limits<double>::infinity();
    if (equal)
      term.values.push_back(*value);
    else if (sign == QLatin1String("<"))
      term.high = std::nextafter(*value, -infinity);
    else if (sign == QLatin1String(">"))
      term.low = std::nextafter(*value, infinity);
    else if (sign == QLatin1String("<=") || sign == QString::fromUtf8("≤"))
      term.high = *value;
    else
      term.low = *value;
  }
  return term;
}

QString text_of_term(const FilterTerm& term) {
  const ResultField& field = result_fields()[term.field];
  const QString label = text_of(field.label);
  const QString unit = field.unit.empty() ? QString() : QLatin1Char(' ') + text_of(field.unit);
  if (!term.words.isEmpty()) return label + QLatin1Char(' ') + term.words.join(QObject::tr(" or "));
  if (!term.values.empty()) {
    QStringList parts;
    for (const double value : term.values) parts.append(three_digits(value));
    return label + QStringLiteral(" = ") + parts.join(QObject::tr(" or ")) + unit;
  }
  if (std::isinf(term.low)) return QStringLiteral("%1 ≤ %2%3").arg(label, three_digits(term.high), unit);
  if (std::isinf(term.high)) return QStringLiteral("%1 ≥ %2%3").arg(label, three_digits(term.low), unit);
  return QStringLiteral("%1 %2 – %3%4").arg(label, three_digits(term.low), three_digits(term.high), unit);
}

void clear_brush(ResultFilter& filter, std::size_t field) {
  std::erase_if(filter.terms, [field](const FilterTerm& term) { return term.brushed && term.field == field; });
}

QString line_of_filter(const ResultFilter& filter) {
  QStringList parts;
  if (filter.fits_only) parts.append(QStringLiteral("+fits"));
  if (filter.front_only) parts.append(QStringLiteral("+front"));
  const auto number = [](double value) { return QString::number(value, 'g', 17); };
  for (const FilterTerm& term : filter.terms) {
    const QString key = text_of(result_fields()[term.field].key);
    QStringList values = term.words;
    for (const double value : term.values) values.append(number(value));
    if (!values.isEmpty()) {
      parts.append(key + QLatin1Char('=') + values.join(QLatin1Char('|')));
      continue;
    }
    if (std::isfinite(term.low)) parts.append(key + QStringLiteral(">=") + number(term.low));
    if (std::isfinite(term.high)) parts.append(key + QStringLiteral("<=") + number(term.high));
  }
  if (!filter.text.isEmpty()) parts.append(filter.text);
  return parts.join(QStringLiteral(", "));
}

Outcome<ResultFilter> parse_filter(const QString& line) {
  ResultFilter filter;
  filter.fits_only = false;
  QStringList words;
  for (const QString& part : line.split(QLatin1Char(','), Qt::SkipEmptyParts)) {
    const QString text = part.trimmed();
    if (text == QLatin1String("+fits")) {
      filter.fits_only = true;
    } else if (text == QLatin1String("+front")) {
      filter.front_only = true;
    } else if (const Outcome<FilterTerm> term = parse_term(text); term.ok()) {
      filter.terms.push_back(*term);
    } else if (term.problems().front().code == "filter.form") {
      words.append(text);
    } else {
      return term.problems();
    }
  }
  filter.text = words.join(QStringLiteral(","));
  return filter;
}

QString text_of_filter(const ResultFilter& filter) {
  QStringList parts;
  if (filter.fits_only) parts.append(QObject::tr("fits"));
  if (filter.front_only) parts.append(QObject::tr("on the front"));
  for (const FilterTerm& term : filter.terms) parts.append(text_of_term(term));
  if (!filter.text.isEmpty()) parts.append(QStringLiteral("“%1”").arg(filter.text));
  return parts.isEmpty() ? QObject::tr("everything") : parts.join(QStringLiteral(", "));
}

void set_brush(ResultFilter& filter, const FilterTerm& term) {
  clear_brush(filter, term.field);
  filter.terms.push_back(term);
  filter.terms.back().brushed = true;
}

std::vector<std::uint32_t> front_of(const std::vector<std::uint32_t>& rows, const std::vector<double>& x, Better better_x,
                                    const std::vector<double>& y, Better better_y) {
  std::vector<std::uint32_t> order = rows;
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const double xa = costs(x[a], better_x), xb = costs(x[b], better_x);
    if (xa != xb) return xa < xb;
    const double ya = costs(y[a], better_y), yb = costs(y[b], better_y);
    return ya != yb ? ya < yb : a < b;
  });
  std::vector<std::uint32_t> front;
  for (const std::uint32_t row : order) {
    if (front.empty() || costs(y[row], better_y) < costs(y[front.back()], better_y)) front.push_back(row);
  }
  return front;
}

std::uint32_t dominator_of(std::uint32_t row, const std::vector<std::uint32_t>& front, const std::vector<double>& x,
                           Better better_x, const std::vector<double>& y, Better better_y) {
  std::uint32_t best = row;
  for (const std::uint32_t other : front) {
    if (costs(x[other], better_x) > costs(x[row], better_x)) break;  // the front goes by x
    if (costs(y[other], better_y) <= costs(y[best], better_y)) best = other;
  }
  return best;
}

FilteredRows filtered(const ResultSet& set, const ResultFilter& filter, std::size_t x, std::size_t y) {
  FilteredRows result;
  const auto rows = static_cast<std::uint32_t>(set.size());
  result.passes.assign(rows, 0);
  std::vector<FilterTerm> terms;
  for (const FilterTerm& term : filter.terms) terms.push_back(resolved_term(term, set.columns[term.field]));
  std::vector<std::uint32_t> fitting;
  for (std::uint32_t row = 0; row < rows; ++row) {
    const bool fits = set.candidates[row].verdict.fit == Fit::kFits;
    if (filter.fits_only && !fits) continue;
    if (!filter.text.isEmpty() && !text_of(to_text(set.candidates[row].recipe)).contains(filter.text, Qt::CaseInsensitive) &&
        !name_of(set.verdicts[row]).contains(filter.text, Qt::CaseInsensitive))
      continue;
    result.considered.push_back(row);
    const bool all = std::ranges::all_of(
        terms, [&](const FilterTerm& term) { return term_passes(term, set.columns[term.field].values[row]); });
    if (!all) continue;
    result.rows.push_back(row);
    if (fits) fitting.push_back(row);
  }
  result.front =
      front_of(fitting, set.columns[x].values, result_fields()[x].better, set.columns[y].values, result_fields()[y].better);
  if (filter.front_only) {
    result.rows = result.front;
    std::ranges::sort(result.rows);
  }
  for (const std::uint32_t row : result.rows) result.passes[row] = 1;
  return result;
}

void sort_rows(const ResultSet& set, const std::vector<SortKey>& keys, std::vector<std::uint32_t>& rows) {
  if (keys.empty()) {
    std::ranges::sort(rows);
    return;
  }
  // The first key lies beside its row: most comparisons touch nothing else.
  struct Keyed {
    double key;
    std::uint32_t row;
  };
  const auto key_of = [&](const SortKey& by, std::uint32_t row) {
    const double value = set.columns[by.field].values[row];
    if (std::isnan(value)) return std::numeric_limits<double>::infinity();
    return by.descending ? -value : value;
  };
  std::vector<Keyed> keyed;
  keyed.reserve(rows.size());
  for (const std::uint32_t row : rows) keyed.push_back({key_of(keys.front(), row), row});
  std::ranges::sort(keyed, [&](const Keyed& a, const Keyed& b) {
    if (a.key != b.key) return a.key < b.key;
    for (std::size_t i = 1; i < keys.size(); ++i) {
      const double ka = key_of(keys[i], a.row), kb = key_of(keys[i], b.row);
      if (ka != kb) return ka < kb;
    }
    return a.row < b.row;
  });
  std::ranges::transform(keyed, rows.begin(), &Keyed::row);
}

}  // namespace cpfit::gui
