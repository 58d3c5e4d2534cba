#include "gui/window/key_map.h"

#include <QObject>
#include <algorithm>

namespace cpfit::gui {

namespace {

const ActionSpec* spec_of(const std::vector<ActionSpec>& specs, const QString& id) {
  const auto found = std::ranges::find(specs, id, &ActionSpec::id);
  return found == specs.end() ? nullptr : &*found;
}

/// Keys that views answer while they have the focus: a command with one of them would take it from all of them. See view_keys().
bool is_view_key(const QKeySequence& key) {
  static const QList<QKeySequence> kTaken = keys_of(QStringLiteral(
      "W; A; S; D; F; L; M; P; R; C; X; +; -; ,; .; [; ]; Space; Return; Enter; Delete; Backspace; Home; End; Left; "
      "Right; Up; Down; PgUp; PgDown; Tab; Shift+Tab; Menu; Alt+Left; Alt+Right; Ctrl+T"));
  return kTaken.contains(key);
}

bool meet(const QKeySequence& a, const QKeySequence& b) {
  return a.matches(b) != QKeySequence::NoMatch || b.matches(a) != QKeySequence::NoMatch;
}

}  // namespace

QList<QKeySequence> keys_of(const QString& text) {
  QList<QKeySequence> keys;
  for (const QString& one : text.split(QStringLiteral("; "), Qt::SkipEmptyParts)) {
    const QKeySequence key = QKeySequence::fromString(one, QKeySequence::PortableText);
    // An unknown name reads as a sequence with an unknown key.
    if (!key.isEmpty() && key[0].key() != Qt::Key_unknown) keys.append(key);
  }
  return keys;
}

QString keys_text(const QList<QKeySequence>& keys) {
  QStringList texts;
  for (const QKeySequence& key : keys) texts.append(key.toString(QKeySequence::PortableText));
  return texts.join(QStringLiteral("; "));
}

QString keys_under(const std::vector<ActionSpec>& specs, const KeyMap& map, const QString& id) {
  if (const auto own = map.find(id); own != map.end()) return own->second;
  const ActionSpec* spec = spec_of(specs, id);
  return spec == nullptr ? QString() : keys_text(keys_of(spec->keys));
}

KeyMap with_keys(const std::vector<ActionSpec>& specs, KeyMap map, const QString& id, const QString& keys) {
  const ActionSpec* spec = spec_of(specs, id);
  if (spec == nullptr) return map;
  const QString text = keys_text(keys_of(keys));
  if (text == keys_text(keys_of(spec->keys)))
    map.erase(id);
  else
    map[id] = text;
  return map;
}

std::vector<KeyConflict> key_conflicts(const std::vector<ActionSpec>& specs, const KeyMap& map, const QString& id,
                                       const QKeySequence& key) {
  std::vector<KeyConflict> found;
  if (key.isEmpty()) return found;
  for (const ActionSpec& spec : specs) {
    if (spec.id == id) continue;
    const QList<QKeySequence> keys = keys_of(keys_under(specs, map, spec.id));
    if (std::ranges::any_of(keys, [&](const QKeySequence& other) { return meet(other, key); }))
      found.push_back({spec.id, AppActions::plain(spec.text)});
  }
  if (is_view_key(key)) found.push_back({{}, QObject::tr("the views, while they have the focus")});
  return found;
}

KeyMap without_key(const std::vector<ActionSpec>& specs, KeyMap map, const QString& id, const QKeySequence& key) {
  QList<QKeySequence> keys = keys_of(keys_under(specs, map, id));
  keys.removeIf([&](const QKeySequence& other) { return meet(other, key); });
  return with_keys(specs, std::move(map), id, keys_text(keys));
}

QStringList lines_of(const KeyMap& map) {
  QStringList lines;
  for (const auto& [id, keys] : map) lines.append(id + QLatin1Char('=') + keys);
  return lines;
}

KeyMap key_map(const std::vector<ActionSpec>& specs, const QStringList& lines) {
  KeyMap map;
  for (const QString& line : lines) {
    const qsizetype at = line.indexOf(QLatin1Char('='));
    if (at <= 0) continue;
    const QString keys = line.mid(at + 1);
    if (keys.isEmpty() || !keys_of(keys).isEmpty()) map = with_keys(specs, std::move(map), line.left(at), keys);
  }
  return map;
}

}  // namespace cpfit::gui
