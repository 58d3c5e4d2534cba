#include "gui/window/examples.h"

#include <QDir>
#include <QFile>
#include <QRegularExpression>

static void init_examples() { Q_INIT_RESOURCE(examples); }

namespace cpfit::gui {

Example described(const QString& path, const QString& text) {
  Example example{path, path, {}};
  bool in_head = true;
  for (const QString& line : text.split(QLatin1Char('\n'))) {
    if (in_head && line.startsWith(QLatin1Char('#'))) {
      example.question += (example.question.isEmpty() ? QString() : QStringLiteral(" ")) + line.mid(1).trimmed();
    } else if (!line.trimmed().isEmpty()) {
      in_head = false;
    }
    static const QRegularExpression kName(QStringLiteral("^name\\s*=\\s*\"([^\"]*)\""));
    if (const QRegularExpressionMatch match = kName.match(line); match.hasMatch()) {
      example.name = match.captured(1);
      break;
    }
  }
  return example;
}

std::vector<Example> bundled_examples() {
  init_examples();
  // In the order in which a newcomer should meet them.
  static const char* const kOrder[] = {
      "llama3-8b-128k-1node.toml",   "llama3-8b-128k-2nodes.toml",   "llama3-70b-32k-8nodes.toml",
      "gemma3-12b-128k-window.toml", "llama3-8b-64k-documents.toml", "llama3-8b-32k-8xpcie.toml",
      "qwen2.5-3b-64k-2kv.toml",     "llama2-7b-256k.toml",          "llama3.1-405b-128k.toml"};
  std::vector<Example> examples;
  for (const char* name : kOrder) {
    const QString path = QStringLiteral("examples/") + QLatin1String(name);
    examples.push_back(described(path, QString::fromStdString(example_text(path))));
  }
  return examples;
}

std::string example_text(const QString& path) {
  init_examples();
  QFile file(QStringLiteral(":/cpfit/") + path);
  return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
}

}  // namespace cpfit::gui
