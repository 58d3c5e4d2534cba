// The bundled scenarios, inside the program: they open in one click wherever it was installed.
#pragma once

#include <QString>
#include <string>
#include <vector>

namespace cpfit::gui {

struct Example {
  QString path;      // "examples/llama3-8b-128k-1node.toml", as a command line in the source tree would name it
  QString name;      // the scenario's own
  QString question;  // the comment it opens with
};
[[nodiscard]] std::vector<Example> bundled_examples();

/// The text of a bundled example by its path; empty when there is none of that path.
[[nodiscard]] std::string example_text(const QString& path);

/// "name" of a scenario's text, and its opening comment as one paragraph.
[[nodiscard]] Example described(const QString& path, const QString& text);

}  // namespace cpfit::gui
