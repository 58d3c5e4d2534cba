#include "gui/view/export_view.h"

#include <QBuffer>
#include <QCoreApplication>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSaveFile>
#include <QSvgGenerator>

#include "gui/view/study_view.h"

namespace cpfit::gui {

namespace {

QString tr(const char* text) { return QCoreApplication::translate("Export", text); }

QByteArray as_png(StudyView& view, double scale) {
  QPixmap picture(view.size() * scale);
  picture.setDevicePixelRatio(scale);
  picture.fill(view.palette().color(QPalette::Window));
  QPainter painter(&picture);
  view.paint_on(painter);
  painter.end();
  QBuffer bytes;
  bytes.open(QIODevice::WriteOnly);
  picture.save(&bytes, "PNG");
  return bytes.data();
}

QByteArray as_pdf(StudyView& view) {
  QBuffer bytes;
  bytes.open(QIODevice::WriteOnly);
  {
    QPdfWriter writer(&bytes);
    constexpr double kDotsPerInch = 96.0;
    writer.setTitle(view.title());
    writer.setCreator(QStringLiteral("cpfit-gui"));
    writer.setResolution(static_cast<int>(kDotsPerInch));
    writer.setPageMargins(QMarginsF(0, 0, 0, 0));
    writer.setPageSize(QPageSize(QSizeF(view.size()) / kDotsPerInch, QPageSize::Inch));
    QPainter painter(&writer);
    view.paint_on(painter);
  }
  return bytes.data();
}

QByteArray as_svg(StudyView& view) {
  QBuffer bytes;
  bytes.open(QIODevice::WriteOnly);
  {
    QSvgGenerator generator;
    generator.setOutputDevice(&bytes);
    generator.setSize(view.size());
    generator.setViewBox(QRect(QPoint(), view.size()));
    generator.setTitle(view.title());
    generator.setDescription(view.summary());
    QPainter painter(&generator);
    view.paint_on(painter);
  }
  return bytes.data();
}

}  // namespace

ExportFormat format_of(const QString& path) {
  const QString name = path.toLower();
  if (name.endsWith(QLatin1String("@2x.png"))) return ExportFormat::kPng2x;
  if (name.endsWith(QLatin1String(".pdf"))) return ExportFormat::kPdf;
  if (name.endsWith(QLatin1String(".svg"))) return ExportFormat::kSvg;
  if (name.endsWith(QLatin1String(".csv"))) return ExportFormat::kCsv;
  return ExportFormat::kPng;
}

QStringList export_filters(const StudyView& view) {
  QStringList filters = {tr("Picture (*.png)"), tr("Picture, twice the size (*@2x.png)"), tr("PDF (*.pdf)"), tr("SVG (*.svg)")};
  if (!view.csv().isEmpty()) filters.append(tr("Table (*.csv)"));
  return filters;
}

QString export_view(StudyView& view, const QString& path, ExportFormat format) {
  QByteArray bytes;
  switch (format) {
    case ExportFormat::kPng:
      bytes = as_png(view, 1.0);
      break;
    case ExportFormat::kPng2x:
      bytes = as_png(view, 2.0);
      break;
    case ExportFormat::kPdf:
      bytes = as_pdf(view);
      break;
    case ExportFormat::kSvg:
      bytes = as_svg(view);
      break;
    case ExportFormat::kCsv:
      bytes = view.csv().toUtf8();
      if (bytes.isEmpty()) return tr("%1 has no table to write.").arg(view.title());
      break;
  }
  QSaveFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size() || !file.commit())
    return tr("%1 cannot be written: %2").arg(path, file.errorString());
  return {};
}

}  // namespace cpfit::gui
