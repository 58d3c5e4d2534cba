// Every view of a study as PNG, light and dark: what `cpfit-gui --screenshots DIR SCENARIO` writes.
#pragma once

#include <QString>
#include <QStringList>

namespace cpfit::gui {

class MainWindow;

struct ScreenshotsDone {
  QStringList files;
  QString trouble;  // empty: all were written
};

/// Waits until everything about the open study is computed, then writes the window and every view into `folder` (created).
[[nodiscard]] ScreenshotsDone write_screenshots(MainWindow& window, const QString& folder);

/// Runs the event loop until nothing is computed any more, at most `limit_ms`; false when that was not enough.
bool wait_until_idle(MainWindow& window, int limit_ms);

}  // namespace cpfit::gui
