// One table of a preset file that ships with the program (TOML underneath, preset_table.cpp only). These files are ours: a
// missing or unreadable value is our mistake and stops the program with file, table and key.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/quantity/units.h"

namespace cpfit {

class PresetTable {
 public:
  /// The tables [[name]] of an embedded file, in order.
  static std::vector<PresetTable> rows(const std::string& file, const std::string& name);
  /// The table [name].
  static PresetTable table(const std::string& file, const std::string& name);

  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] std::string text(const std::string& key) const;
  [[nodiscard]] std::vector<std::string> texts(const std::string& key) const;
  [[nodiscard]] double number(const std::string& key) const;  // integer or float
  [[nodiscard]] bool flag(const std::string& key) const;
  [[nodiscard]] Bytes bytes(const std::string& key) const;
  [[nodiscard]] BytesPerSecond rate(const std::string& key) const;
  [[nodiscard]] Seconds time(const std::string& key) const;
  /// Any scalar as a person would write it: "400 Gb/s", "8", "true".
  [[nodiscard]] std::string written(const std::string& key) const;

 private:
  struct Body;
  PresetTable(std::string where, std::shared_ptr<const Body> body) : where_(std::move(where)), body_(std::move(body)) {}
  [[noreturn]] void fail(const std::string& key, const std::string& reason) const;

  std::string where_;
  std::shared_ptr<const Body> body_;
};

}  // namespace cpfit
