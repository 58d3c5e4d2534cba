// Keys of commands as a person set them: what differs from the action table, who has a key already, and what views keep for
// themselves. Pure but for reading key sequences.
#pragma once

#include <QKeySequence>
#include <QList>
#include <QString>
#include <map>
#include <vector>

#include "gui/window/app_actions.h"

namespace cpfit::gui {

[[nodiscard]] QList<QKeySequence> keys_of(const QString& text);
[[nodiscard]] QString keys_text(const QList<QKeySequence>& keys);

/// What an action has under a map.
[[nodiscard]] QString keys_under(const std::vector<ActionSpec>& specs, const KeyMap& map, const QString& id);
/// The map with an action's keys set; the table's own keys are no entry.
[[nodiscard]] KeyMap with_keys(const std::vector<ActionSpec>& specs, KeyMap map, const QString& id, const QString& keys);

struct KeyConflict {
  QString id;    // the action that has the key, or one that begins with it; empty: a view has it
  QString text;  // whom a person would call it by
};
/// Who has a key already, but for `id`; none. Of a sequence of several keys ("Ctrl+K, Ctrl+T") the beginning counts as well.
[[nodiscard]] std::vector<KeyConflict> key_conflicts(const std::vector<ActionSpec>& specs, const KeyMap& map, const QString& id,
                                                     const QKeySequence& key);
/// The map without a key of an action.
[[nodiscard]] KeyMap without_key(const std::vector<ActionSpec>& specs, KeyMap map, const QString& id, const QKeySequence& key);

/// The text of a session, an entry a line ("edit.undo=Ctrl+Z"), and back; entries of unknown actions and unreadable keys are left
/// out.
[[nodiscard]] QStringList lines_of(const KeyMap& map);
[[nodiscard]] KeyMap key_map(const std::vector<ActionSpec>& specs, const QStringList& lines);

}  // namespace cpfit::gui
