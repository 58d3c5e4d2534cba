// Editing the text of a scenario file without disturbing what a person wrote around the value: comments and order stay. Every
// result is read again by the scenario reader before it counts, so that a form of TOML this does not understand is a problem said
// aloud, never a wrong file.
#pragma once

#include <string>
#include <string_view>

#include "gui/study/design.h"
#include "model/quantity/problem.h"

namespace cpfit::gui {

/// `key = literal` in `[section]` ("" is the top of the file): replaced where it stands, else added; the section is added when
/// absent, and takes the place of what the file writes in one line (`cluster = {nodes = 2}`). A comment behind the value stays.
[[nodiscard]] std::string with_toml_value(std::string_view text, std::string_view section, std::string_view key,
                                          std::string_view literal);
/// Without the key; unchanged where it is absent.
[[nodiscard]] std::string without_toml_key(std::string_view text, std::string_view section, std::string_view key);
/// Without the whole `[section]`, and without its sub-tables.
[[nodiscard]] std::string without_toml_section(std::string_view text, std::string_view section);

[[nodiscard]] std::string toml_string(std::string_view value);

/// The scenario as a file that opens with this design: sequence, batch, precision, framework and every choice of the recipe.
/// Problem "gui.scenario_form" when the file is written in a form that cannot be edited here.
[[nodiscard]] Outcome<std::string> scenario_text(const Design& design);

/// The scenario of an edited text, its path kept. Problems: the reader's.
[[nodiscard]] Outcome<Design> reread(const Design& design, const std::string& text);

}  // namespace cpfit::gui
