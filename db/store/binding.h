// Values into the parameters of a statement, and out of the columns of a row, from left to right. Private to db.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"
#include "model/quantity/units.h"

namespace cpfit {

class Binder {
 public:
  /// A statement that failed before is ready again after this.
  explicit Binder(SQLite::Statement& statement) : statement_(statement) { (void)statement_.tryReset(); }
  Binder& integer(std::int64_t value) {
    statement_.bind(++index_, value);
    return *this;
  }
  Binder& real(double value) {
    statement_.bind(++index_, value);
    return *this;
  }
  Binder& bytes(Bytes value) { return real(value.value()); }
  Binder& seconds(Seconds value) { return real(value.value()); }
  /// Not copied: `value` must live until the statement has run.
  Binder& text(const std::string& value) {
    statement_.bindNoCopy(++index_, value);
    return *this;
  }
  Binder& text(std::string&& value) {
    statement_.bind(++index_, value);
    return *this;
  }
  /// Copied.
  Binder& text(std::string_view value) { return text(std::string(value)); }
  /// A whole string literal (what name_of returns): it lasts, and ends with a zero.
  Binder& word(std::string_view literal) {
    statement_.bindNoCopy(++index_, literal.data());
    return *this;
  }
  /// Not copied: `value` must live until the statement has run. Empty is an empty value, not NULL.
  Binder& blob(std::span<const unsigned char> value) {
    static constexpr unsigned char kNothing = 0;
    statement_.bindNoCopy(++index_, value.empty() ? &kNothing : value.data(), static_cast<int>(value.size()));
    return *this;
  }
  Binder& null() {
    statement_.bind(++index_);
    return *this;
  }
  void run() {
    statement_.exec();
    statement_.reset();
    index_ = 0;
  }

 private:
  SQLite::Statement& statement_;
  int index_ = 0;
};

class RowReader {
 public:
  explicit RowReader(SQLite::Statement& statement, int first_column = 0) : statement_(statement), index_(first_column - 1) {}
  [[nodiscard]] std::int64_t integer() { return statement_.getColumn(++index_).getInt64(); }
  [[nodiscard]] std::int32_t small_integer() { return statement_.getColumn(++index_).getInt(); }
  [[nodiscard]] double real() { return statement_.getColumn(++index_).getDouble(); }
  [[nodiscard]] Bytes bytes() { return Bytes(real()); }
  [[nodiscard]] Seconds seconds() { return Seconds(real()); }
  [[nodiscard]] std::string text() { return statement_.getColumn(++index_).getString(); }
  /// Valid until the statement's next step.
  [[nodiscard]] std::span<const unsigned char> blob() {
    const SQLite::Column column = statement_.getColumn(++index_);
    return {static_cast<const unsigned char*>(column.getBlob()), static_cast<std::size_t>(column.getBytes())};
  }
  [[nodiscard]] bool flag() { return integer() != 0; }
  [[nodiscard]] bool next_is_null() const { return statement_.isColumnNull(index_ + 1); }

  /// The value of an enumeration (0, 1, ... `count` - 1) by the name under which name_of prints it.
  template <class E>
  [[nodiscard]] E named(int count) {
    const std::string name = text();
    for (int i = 0; i < count; ++i) {
      if (name_of(static_cast<E>(i)) == name) return static_cast<E>(i);
    }
    throw Error("the database holds the word '" + name + "' that this cpfit does not know. Update cpfit");
  }

 private:
  SQLite::Statement& statement_;
  int index_;
};

/// "a,b" and back; the words hold no comma.
[[nodiscard]] std::string join_words(const std::vector<std::string>& words);
[[nodiscard]] std::vector<std::string> split_words(const std::string& text);

/// "?, ?, ?" for `count` parameters.
[[nodiscard]] std::string placeholders(int count);

}  // namespace cpfit
