#include "gui/study/locks.h"

#include <algorithm>
#include <array>

#include "gui/study/recipe_values.h"
#include "sim/plan/verdict.h"

namespace cpfit::gui {

namespace {

std::string label_with_value(std::string_view key, const Recipe& recipe) {
  const Parameter* parameter = find_parameter(key);
  return std::string(parameter != nullptr ? parameter->label : key) + " " + recipe_value(recipe, key);
}

}  // namespace

bool is_lockable(std::string_view key) {
  const Parameter* parameter = find_parameter(key);
  return parameter != nullptr && parameter->group != "Question";
}

Problem locked_problem(std::string_view key, const Recipe& recipe) {
  const Parameter* parameter = find_parameter(key);
  return {"gui.locked", std::string(key),
          std::string(parameter != nullptr ? parameter->label : key) + " is locked at " + recipe_value(recipe, key),
          "unlock it in the recipe panel first"};
}

Problems broken_locks(const Locks& locks, const Recipe& from, const Recipe& to) {
  for (const std::string& key : locks) {
    if (recipe_value(from, key) != recipe_value(to, key)) return {locked_problem(key, from)};
  }
  return {};
}

Recipe with_locked(const Recipe& to, const Locks& locks, const Recipe& from) {
  Recipe kept = to;
  for (const std::string& key : locks) {
    const Outcome<Recipe> changed = parse_recipe(key + "=" + recipe_value(from, key), kept);
    if (changed.ok()) kept = *changed;
  }
  return kept;
}

std::string derived_within(const Locks& locks, const std::string& wished) {
  if (!wished.empty() && !locks.contains(wished)) return wished;
  for (const char* key : std::array{"dp", "cp", "tp", "pp"}) {
    if (!locks.contains(std::string_view(key))) return key;
  }
  return {};
}

std::optional<Candidate> ship_within(const std::vector<Candidate>& evaluated, const Requirements& requirements,
                                     const Locks& locks, const Recipe& now) {
  std::vector<Candidate> kept;
  std::ranges::copy_if(evaluated, std::back_inserter(kept),
                       [&](const Candidate& candidate) { return broken_locks(locks, now, candidate.recipe).empty(); });
  const std::optional<std::size_t> ship = choose_ship(kept, requirements);
  return ship ? std::optional(std::move(kept[*ship])) : std::nullopt;
}

std::vector<Lever> levers_within(const std::vector<Lever>& levers, const Locks& locks) {
  std::vector<Lever> kept;
  std::ranges::copy_if(levers, std::back_inserter(kept), [&](const Lever& lever) {
    return std::ranges::none_of(lever.differs, [&](const std::string& key) { return locks.contains(key); });
  });
  return kept;
}

std::string locks_text(const Locks& locks, const Recipe& recipe) {
  std::string text;
  for (const std::string& key : locks) text += (text.empty() ? "" : ", ") + label_with_value(key, recipe);
  return text;
}

}  // namespace cpfit::gui
