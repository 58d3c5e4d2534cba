#include "gui/window/session.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSaveFile>
#include <QStandardPaths>
#include <algorithm>

namespace cpfit::gui {

namespace {

constexpr int kVersion = 1;

QString tr(const char* text) { return QCoreApplication::translate("Session", text); }

QByteArray bytes(const QJsonValue& value) { return QByteArray::fromBase64(value.toString().toLatin1()); }
QString text(const QByteArray& bytes) { return QString::fromLatin1(bytes.toBase64()); }

}  // namespace

QByteArray to_json(const SessionState& state) {
  QJsonObject json;
  json["version"] = kVersion;
  json["geometry"] = text(state.geometry);
  json["docks"] = text(state.docks);
  json["layout_version"] = kLayoutVersion;
  json["study"] = state.study;
  json["recipe"] = state.recipe;
  json["locks"] = QJsonArray::fromStringList(state.locks);
  json["database"] = state.database;
  json["calibration_from"] = state.calibration_from;
  json["calibration_id"] = state.calibration_id;
  json["filters"] = QJsonArray::fromStringList(state.filters);
  json["log_axes"] = QJsonArray::fromStringList(state.log_axes);
  json["keys"] = QJsonArray::fromStringList(state.keys);
  json["recent"] = QJsonArray::fromStringList(state.recent);
  json["theme"] = state.theme;
  json["scale"] = state.scale;
  return QJsonDocument(json).toJson();
}

SessionRead session_from_json(const QByteArray& json) {
  SessionRead read;
  QJsonParseError error;
  const QJsonDocument document = QJsonDocument::fromJson(json, &error);
  if (!document.isObject()) {
    read.trouble = tr("The last session cannot be read (%1): the window starts afresh.").arg(error.errorString());
    return read;
  }
  const QJsonObject object = document.object();
  if (object["version"].toInt() != kVersion) {
    read.trouble = tr("The last session is of another version: the window starts afresh.");
    return read;
  }
  SessionState& state = read.state;
  state.geometry = bytes(object["geometry"]);
  if (object["layout_version"].toInt() == kLayoutVersion) state.docks = bytes(object["docks"]);
  state.study = object["study"].toString();
  state.recipe = object["recipe"].toString();
  for (const QJsonValue& value : object["locks"].toArray()) {
    if (value.isString()) state.locks.append(value.toString());
  }
  state.database = object["database"].toString();
  state.calibration_from = object["calibration_from"].toString();
  state.calibration_id = object["calibration_id"].toString();
  for (const QJsonValue& value : object["filters"].toArray()) {
    if (value.isString()) state.filters.append(value.toString());
  }
  for (const QJsonValue& value : object["log_axes"].toArray()) {
    if (value.isString()) state.log_axes.append(value.toString());
  }
  for (const QJsonValue& value : object["keys"].toArray()) {
    if (value.isString()) state.keys.append(value.toString());
  }
  for (const QJsonValue& value : object["recent"].toArray()) {
    if (value.isString() && state.recent.size() < kRecentKept) state.recent.append(value.toString());
  }
  state.theme = object["theme"].toString(QStringLiteral("system"));
  state.scale = std::clamp(object["scale"].toDouble(1.0), 0.75, 2.0);
  return read;
}

QString session_path() {
  return QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) + QStringLiteral("/session.json");
}

SessionRead load_session(const QString& path) {
  QFile file(path);
  if (!file.exists()) return {};
  if (!file.open(QIODevice::ReadOnly)) return {{}, tr("The last session cannot be read: %1").arg(file.errorString())};
  SessionRead read = session_from_json(file.readAll());
  if (!read.trouble.isEmpty()) {
    file.close();
    QFile::remove(path + QStringLiteral(".broken"));
    QFile::rename(path, path + QStringLiteral(".broken"));
  }
  return read;
}

QString save_session(const SessionState& state, const QString& path) {
  QDir().mkpath(QFileInfo(path).absolutePath());
  QSaveFile file(path);
  if (!file.open(QIODevice::WriteOnly)) return tr("The session cannot be kept: %1").arg(file.errorString());
  const QByteArray json = to_json(state);
  if (file.write(json) != json.size() || !file.commit()) return tr("The session cannot be kept: %1").arg(file.errorString());
  return {};
}

QStringList with_recent(QStringList recent, const QString& path) {
  recent.removeAll(path);
  recent.prepend(path);
  while (recent.size() > kRecentKept) recent.removeLast();
  return recent;
}

}  // namespace cpfit::gui
