#include "gui/study/scenario_text.h"

#include <fmt/format.h>

#include <cctype>
#include <vector>

#include "gui/study/recipe_values.h"
#include "model/quantity/text.h"

namespace cpfit::gui {

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

/// Where the comment of a line begins; npos when it has none. A # inside quotes is none.
std::size_t comment_at(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == '\\' && quote == '"')
        ++i;
      else if (line[i] == quote)
        quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#') {
      return i;
    }
  }
  return std::string_view::npos;
}

/// "training" of "[training]  # words"; "[[x]]" counts as "[x]".
std::optional<std::string> header_of(std::string_view line) {
  std::string_view body = trimmed(line.substr(0, comment_at(line)));
  if (body.size() < 2 || body.front() != '[' || body.back() != ']') return std::nullopt;
  body = body.substr(1, body.size() - 2);
  return std::string(trimmed(body));
}

bool sets_key(std::string_view line, std::string_view key) {
  const std::size_t equals = line.find('=');
  return equals != std::string_view::npos && trimmed(line.substr(0, equals)) == key;
}

struct Place {
  std::size_t begin = 0, end = 0;  // lines of the section's body
  bool exists = false;
};

Place place_of(const std::vector<std::string>& lines, std::string_view section) {
  Place place;
  place.exists = section.empty();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::optional<std::string> header = header_of(lines[i]);
    if (!header) continue;
    if (place.exists) {
      place.end = i;
      return place;
    }
    if (*header == section) {
      place.exists = true;
      place.begin = i + 1;
    }
  }
  if (place.exists) place.end = lines.size();
  return place;
}

std::optional<std::size_t> line_of_key(const std::vector<std::string>& lines, const Place& place, std::string_view key) {
  for (std::size_t i = place.begin; i < place.end; ++i) {
    if (sets_key(lines[i], key)) return i;
  }
  return std::nullopt;
}

/// The entries of an inline table's inside, `a = 1, b = "x"`, one a line. A comma inside quotes, brackets or braces parts
/// nothing.
std::vector<std::string> entries_of(std::string_view inside) {
  std::vector<std::string> entries;
  std::size_t begin = 0;
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i <= inside.size(); ++i) {
    const char c = i < inside.size() ? inside[i] : ',';
    if (quote != 0) {
      if (c == '\\' && quote == '"')
        ++i;
      else if (c == quote)
        quote = 0;
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c != ',' || depth > 0) continue;
    if (const std::string_view entry = trimmed(inside.substr(begin, i - begin)); !entry.empty()) entries.emplace_back(entry);
    begin = i + 1;
  }
  return entries;
}

/// A section that the file writes as one line, `cluster = {preset = "x", nodes = 2}` or `cluster = "x"`, written as a section:
/// only there can lines be set. A plain text is the name of a preset.
std::vector<std::string> in_section_form(std::vector<std::string> lines, std::string_view section) {
  if (section.empty() || place_of(lines, section).exists) return lines;
  const std::optional<std::size_t> line = line_of_key(lines, place_of(lines, ""), section);
  if (!line) return lines;
  const std::string written = lines[*line];
  std::string_view value = std::string_view(written).substr(0, comment_at(written));
  value = trimmed(value.substr(value.find('=') + 1));
  const bool table = value.size() >= 2 && value.front() == '{' && value.back() == '}';
  if (!table && !value.starts_with('"') && !value.starts_with('\'')) return lines;
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(*line));
  if (!lines.empty() && !trimmed(lines.back()).empty()) lines.emplace_back();
  lines.push_back(fmt::format("[{}]", section));
  if (!table) lines.push_back(fmt::format("preset = {}", value));
  if (table)
    for (std::string& entry : entries_of(value.substr(1, value.size() - 2))) lines.push_back(std::move(entry));
  return lines;
}

/// Numbers and flags bare, words in quotes.
std::string toml_literal(const std::string& value) {
  const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  return number || value == "true" || value == "false" ? value : toml_string(value);
}

}  // namespace

std::string toml_string(std::string_view value) {
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string with_toml_value(std::string_view text, std::string_view section, std::string_view key, std::string_view literal) {
  std::vector<std::string> lines = in_section_form(lines_of(text), section);
  const Place place = place_of(lines, section);
  const std::string setting = fmt::format("{} = {}", key, literal);
  if (!place.exists) {
    if (!lines.empty() && !trimmed(lines.back()).empty()) lines.emplace_back();
    lines.push_back(fmt::format("[{}]", section));
    lines.push_back(setting);
    return joined(lines);
  }
  if (const std::optional<std::size_t> at = line_of_key(lines, place, key)) {
    const std::size_t comment = comment_at(lines[*at]);
    lines[*at] = setting + (comment == std::string::npos ? "" : "  " + lines[*at].substr(comment));
    return joined(lines);
  }
  std::size_t after = place.end;
  while (after > place.begin && (trimmed(lines[after - 1]).empty() || trimmed(lines[after - 1]).starts_with('#'))) --after;
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(after), setting);
  return joined(lines);
}

std::string without_toml_key(std::string_view text, std::string_view section, std::string_view key) {
  std::vector<std::string> lines = in_section_form(lines_of(text), section);
  const Place place = place_of(lines, section);
  if (!place.exists) return joined(lines);
  if (const std::optional<std::size_t> at = line_of_key(lines, place, key))
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(*at));
  return joined(lines);
}

std::string without_toml_section(std::string_view text, std::string_view section) {
  std::vector<std::string> kept;
  bool inside = false;
  for (const std::string& line : lines_of(text)) {
    if (const std::optional<std::string> header = header_of(line))
      inside = *header == section || header->starts_with(std::string(section) + ".");
    if (!inside) kept.push_back(line);
  }
  return joined(kept);
}

Outcome<Design> reread(const Design& design, const std::string& text) {
  Outcome<Scenario> read = read_scenario(text, design.scenario->path);
  if (!read.ok()) return read.problems();
  Design changed = design;
  changed.scenario = std::make_shared<const Scenario>(std::move(read).value());
  return changed;
}

Outcome<std::string> scenario_text(const Design& design) {
  const Scenario& scenario = *design.scenario;
  std::string text = scenario.text;
  text = with_toml_value(text, "training", "sequence_length", toml_string(print_tokens(scenario.training.sequence)));
  text = without_toml_key(text, "training", "global_batch_tokens");
  text = with_toml_value(text, "training", "global_batch", std::to_string(scenario.training.global_batch));
  text = with_toml_value(text, "training", "precision", toml_string(name_of(design.recipe.precision)));
  text = with_toml_value(text, "training", "framework", toml_string(design.recipe.framework));
  for (const std::string& key : recipe_keys()) {
    if (key == "precision" || key == "framework") continue;
    text = with_toml_value(text, "recipe", key, toml_literal(recipe_value(design.recipe, key)));
  }
  const Outcome<Scenario> read = read_scenario(text, scenario.path);
  if (!read.ok()) {
    return Problem{"gui.scenario_form", scenario.path,
                   "this scenario is written in a form that cannot be changed here: " + read.problems().front().message,
                   "edit the file by hand, or write each value on a line of its own"};
  }
  const bool kept = read->base == design.recipe && same_question(*read, scenario);
  // A topology is built anew by every reading, so that only its name can be compared.
  const bool same_but_for_the_graph =
      read->base == design.recipe && read->model == scenario.model && read->cluster.gpus() == scenario.cluster.gpus() &&
      read->training.sequence == scenario.training.sequence && read->training.global_batch == scenario.training.global_batch;
  if (!kept && !same_but_for_the_graph) {
    std::string fields;
    for (const std::string& field : differences(read->base, design.recipe)) fields += (fields.empty() ? "" : ", ") + field;
    return Problem{"gui.scenario_form", scenario.path,
                   fmt::format("the file would not open with this design ({})", fields.empty() ? "the question" : fields),
                   "remove the [search] axes of one value that contradict the recipe"};
  }
  return text;
}

}  // namespace cpfit::gui
