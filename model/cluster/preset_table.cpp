#include "model/cluster/preset_table.h"

#include <toml++/toml.h>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "model/presets/embedded.h"
#include "model/quantity/text.h"

namespace cpfit {

struct PresetTable::Body {
  toml::table table;
};

namespace {

[[noreturn]] void stop(const std::string& where, const std::string& reason) {
  std::fprintf(stderr, "cpfit: internal error: %s: %s\n", where.c_str(), reason.c_str());
  std::abort();
}

toml::table parsed(const std::string& file) {
  try {
    return toml::parse(embedded_file(file), file);
  } catch (const toml::parse_error& error) {
    std::ostringstream text;
    text << error;
    stop(file, text.str());
  }
}

}  // namespace

std::vector<PresetTable> PresetTable::rows(const std::string& file, const std::string& name) {
  std::vector<PresetTable> rows;
  const toml::table whole = parsed(file);
  const toml::array* array = whole[name].as_array();
  if (array == nullptr) stop(file, "no [[" + name + "]]");
  for (const toml::node& node : *array) {
    if (!node.is_table()) stop(file, "[[" + name + "]] holds something that is no table");
    rows.push_back(PresetTable(file + " [[" + name + "]] #" + std::to_string(rows.size() + 1),
                               std::make_shared<const Body>(Body{*node.as_table()})));
  }
  return rows;
}

PresetTable PresetTable::table(const std::string& file, const std::string& name) {
  const toml::table whole = parsed(file);
  const toml::table* table = whole[name].as_table();
  if (table == nullptr) stop(file, "no [" + name + "]");
  return {file + " [" + name + "]", std::make_shared<const Body>(Body{*table})};
}

void PresetTable::fail(const std::string& key, const std::string& reason) const { stop(where_ + " " + key, reason); }

bool PresetTable::has(const std::string& key) const { return body_->table.contains(key); }

std::vector<std::string> PresetTable::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : body_->table) keys.emplace_back(key.str());
  return keys;
}

std::string PresetTable::text(const std::string& key) const {
  const auto value = body_->table[key].value<std::string>();
  if (!value) fail(key, "needs a string");
  return *value;
}

std::vector<std::string> PresetTable::texts(const std::string& key) const {
  const toml::array* array = body_->table[key].as_array();
  if (array == nullptr) fail(key, "needs a list of strings");
  std::vector<std::string> values;
  for (const toml::node& node : *array) {
    const auto value = node.value<std::string>();
    if (!value) fail(key, "needs a list of strings");
    values.push_back(*value);
  }
  return values;
}

double PresetTable::number(const std::string& key) const {
  const auto value = body_->table[key].value<double>();
  if (!value) fail(key, "needs a number");
  return *value;
}

bool PresetTable::flag(const std::string& key) const {
  const auto value = body_->table[key].value<bool>();
  if (!value) fail(key, "needs true or false");
  return *value;
}

Bytes PresetTable::bytes(const std::string& key) const {
  const Outcome<Bytes> value = parse_bytes(text(key));
  if (!value) fail(key, to_text(value.problems().front()));
  return *value;
}

BytesPerSecond PresetTable::rate(const std::string& key) const {
  const Outcome<BytesPerSecond> value = parse_rate(text(key));
  if (!value) fail(key, to_text(value.problems().front()));
  return *value;
}

Seconds PresetTable::time(const std::string& key) const {
  const Outcome<Seconds> value = parse_time(text(key));
  if (!value) fail(key, to_text(value.problems().front()));
  return *value;
}

std::string PresetTable::written(const std::string& key) const {
  const auto node = body_->table[key];
  if (const auto value = node.value_exact<std::string>()) return *value;
  if (const auto value = node.value_exact<bool>()) return *value ? "true" : "false";
  if (const auto value = node.value_exact<std::int64_t>()) return std::to_string(*value);
  if (const auto value = node.value_exact<double>()) {
    std::ostringstream text;
    text << *value;
    return text.str();
  }
  fail(key, "needs a string, a number, true or false");
}

}  // namespace cpfit
