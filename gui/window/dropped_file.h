// What a file is, by its content and not by its name; what the window then does with it is the window's.
#pragma once

#include <QByteArray>
#include <QString>

namespace cpfit::gui {

enum class FileKind { kScenario, kDatabase, kModelConfig, kTopology, kTrace, kMeasurement, kPlanResult, kUnknown };

struct FileNature {
  FileKind kind = FileKind::kUnknown;
  QString sentence;  // kUnknown: what it seems to be and what would be understood
};

/// `head`: the beginning of the file, at most kHeadBytes; `name`: for the sentence.
inline constexpr qint64 kHeadBytes = 65536;
[[nodiscard]] FileNature nature_of(const QByteArray& head, const QString& name);

/// Reads the head; an unreadable file is kUnknown with the system's reason.
[[nodiscard]] FileNature nature_of_file(const QString& path);

/// The recipe that a copied text speaks of: what stands behind --recipe of a command line, else its first line.
[[nodiscard]] QString recipe_in_text(const QString& text);

}  // namespace cpfit::gui
