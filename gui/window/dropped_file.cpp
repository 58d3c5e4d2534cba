#include "gui/window/dropped_file.h"

#include <QCoreApplication>
#include <QFile>
#include <QFileInfo>

namespace cpfit::gui {

namespace {

QString translated(const char* text) { return QCoreApplication::translate("DroppedFile", text); }

bool has_key(const QByteArray& head, const char* key) { return head.contains(QByteArray("\"") + key + "\""); }

/// A line that begins with `word`, blanks apart.
bool has_line(const QByteArray& head, const QByteArray& word) {
  for (const QByteArray& line : head.split('\n')) {
    if (line.trimmed().startsWith(word)) return true;
  }
  return false;
}

FileNature nature_of_json(const QByteArray& head, const QString& name) {
  if (has_key(head, "traceEvents") || (has_key(head, "ph") && has_key(head, "ts"))) return {FileKind::kTrace, {}};
  if (has_key(head, "model_type") || has_key(head, "num_hidden_layers") || has_key(head, "architectures"))
    return {FileKind::kModelConfig, {}};
  if (has_key(head, "verdict") && has_key(head, "candidates")) return {FileKind::kPlanResult, {}};
  if (has_key(head, "vertices") || has_key(head, "links") || has_key(head, "base") || has_key(head, "fabric"))
    return {FileKind::kTopology, {}};
  if (has_key(head, "samples") || has_key(head, "probe") || has_key(head, "probes") || has_key(head, "measurements"))
    return {FileKind::kMeasurement, {}};
  return {FileKind::kUnknown,
          translated("%1 is JSON, but none that is known here: a model's config.json, a topology, a trace or a "
                     "measurement is.")
              .arg(name)};
}

}  // namespace

FileNature nature_of(const QByteArray& head, const QString& name) {
  if (head.startsWith("SQLite format 3")) return {FileKind::kDatabase, {}};
  if (head.startsWith("\x1f\x8b")) return {FileKind::kTrace, {}};  // traces are the only compressed files read here
  const QByteArray text = head.trimmed();
  if (text.isEmpty()) return {FileKind::kUnknown, translated("%1 is empty.").arg(name)};
  if (text.startsWith('{') || text.startsWith("[{") || text.startsWith("[\n")) return nature_of_json(text, name);
  if (has_line(text, "[training]") || has_line(text, "training.") || has_line(text, "training ") || has_line(text, "training=") ||
      has_line(text, "sequence_length"))
    return {FileKind::kScenario, {}};
  if (text.startsWith("<?xml") || text.startsWith("<system") || text.startsWith("<topology") || text.contains("GPU0\t") ||
      text.contains("SwitchName="))
    return {FileKind::kTopology, {}};
  if (name.endsWith(QLatin1String(".toml"))) {
    return {FileKind::kUnknown,
            translated("%1 is TOML without a [training] section: a scenario has one, with its sequence_length.").arg(name)};
  }
  if (head.contains('\0'))
    return {FileKind::kUnknown, translated("%1 is a binary file of a kind that is not read here.").arg(name)};
  return {FileKind::kUnknown, translated("%1 is nothing that is read here: open a scenario (.toml), a result database, a model's "
                                         "config.json, a topology, a trace or a measurement.")
                                  .arg(name)};
}

FileNature nature_of_file(const QString& path) {
  const QString name = QFileInfo(path).fileName();
  if (QFileInfo(path).isDir()) return {FileKind::kUnknown, translated("%1 is a folder: drop one file of it.").arg(name)};
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly))
    return {FileKind::kUnknown, translated("%1 cannot be read: %2").arg(name, file.errorString())};
  return nature_of(file.read(kHeadBytes), name);
}

QString recipe_in_text(const QString& text) {
  const QString option = QStringLiteral("--recipe");
  if (const qsizetype at = text.indexOf(option); at >= 0) {
    QString rest = text.mid(at + option.size());
    while (!rest.isEmpty() && (rest.front().isSpace() || rest.front() == QLatin1Char('='))) rest.remove(0, 1);
    if (rest.isEmpty()) return {};
    const QChar quote = rest.front();
    if (quote == QLatin1Char('"') || quote == QLatin1Char('\'')) return rest.mid(1).section(quote, 0, 0);
    return rest.section(QLatin1Char(' '), 0, 0).trimmed();
  }
  return text.trimmed().section(QLatin1Char('\n'), 0, 0).trimmed();
}

}  // namespace cpfit::gui
