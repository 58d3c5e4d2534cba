// A view as a file: PNG at once and twice its size, PDF, SVG, CSV.
#pragma once

#include <QString>
#include <QStringList>

namespace cpfit::gui {

class StudyView;

enum class ExportFormat { kPng, kPng2x, kPdf, kSvg, kCsv };

/// By the name's ending; "@2x.png" is twice the size. kPng where it is unknown.
[[nodiscard]] ExportFormat format_of(const QString& path);
/// Filters of a file dialog for what this view can be written as.
[[nodiscard]] QStringList export_filters(const StudyView& view);

/// Empty, or a sentence that says what could not be written and why.
[[nodiscard]] QString export_view(StudyView& view, const QString& path, ExportFormat format);

}  // namespace cpfit::gui
