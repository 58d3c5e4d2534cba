// What is remembered between two starts: the window, its docks, what was open with its database and rates, what was open before,
// kept filters, theme and scale. A file per
// user in the state folder, never inside a study; unreadable or of another version, it is put aside and said once.
#pragma once

#include <QByteArray>
#include <QString>
#include <QStringList>

namespace cpfit::gui {

struct SessionState {
  QByteArray geometry;                       // of the window
  QByteArray docks;                          // QMainWindow::saveState(kLayoutVersion)
  QString study;                             // path of the open scenario; empty: none
  QString recipe;                            // its recipe as complete text
  QStringList locks;                         // choices of it that are held
  QString database;                          // that was open beside it; empty: none
  QString calibration_from, calibration_id;  // rates of the study: file or database, and which of it; empty: the defaults
  QStringList filters;                       // kept ones of Results, newest first
  QStringList log_axes;                      // of the parallel axes in Results: keys of fields
  QStringList keys;                          // of commands, where a person changed them: key_map.h
  QStringList recent;                        // newest first
  QString theme = QStringLiteral("system");
  double scale = 1.0;
  friend bool operator==(const SessionState&, const SessionState&) = default;
};

/// Docks of another version are not restored: a layout is never half applied.
inline constexpr int kLayoutVersion = 1;
inline constexpr int kRecentKept = 12;

[[nodiscard]] QByteArray to_json(const SessionState& state);

struct SessionRead {
  SessionState state;
  QString trouble;  // a sentence; empty: it was read, or there was none yet
};
[[nodiscard]] SessionRead session_from_json(const QByteArray& json);

[[nodiscard]] QString session_path();
[[nodiscard]] SessionRead load_session(const QString& path);
/// A sentence when it could not be written.
[[nodiscard]] QString save_session(const SessionState& state, const QString& path);

/// `path` in front, once, at most kRecentKept.
[[nodiscard]] QStringList with_recent(QStringList recent, const QString& path);

}  // namespace cpfit::gui
