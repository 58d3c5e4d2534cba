// How cpfit answers trouble. A person's input is answered with values: a list of Problem, or an Outcome that holds either
// the result or the problems. The world's failures (files, SQLite) throw Error with context. Our own mistakes abort.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cpfit {

/// One thing wrong with what a person gave us.
struct Problem {
  std::string code;     // stable, dotted: "scenario.unknown_key", "recipe.world_size"
  std::string where;    // "examples/a.toml:12:7", "training.sequence_length", "--recipe"; may be empty
  std::string message;  // what is wrong, one sentence with the values
  std::string repair;   // what to do, one sentence; may be empty
};

using Problems = std::vector<Problem>;

/// "where: message — repair" on one line; parts that are empty leave no trace.
[[nodiscard]] std::string to_text(const Problem& problem);

/// Either a value or at least one problem.
template <class T>
class Outcome {
 public:
  Outcome(T value) : value_(std::move(value)) {}                  // NOLINT(google-explicit-constructor): reads as the value
  Outcome(Problems problems) : problems_(std::move(problems)) {}  // NOLINT(google-explicit-constructor)
  Outcome(Problem problem) { problems_.push_back(std::move(problem)); }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const T& value() const& { return value_.value(); }
  [[nodiscard]] T& value() & { return value_.value(); }
  [[nodiscard]] T&& value() && { return std::move(value_).value(); }
  [[nodiscard]] const T& operator*() const& { return value_.value(); }
  [[nodiscard]] const T* operator->() const { return &value_.value(); }
  [[nodiscard]] const Problems& problems() const { return problems_; }

 private:
  std::optional<T> value_;
  Problems problems_;
};

/// A failure of the world around us: a file, a database, a device. `what()` says what was tried, on what, and the reason.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The candidate that was probably meant by `word`: the nearest one, if at most a third of the letters differ (a swap of two
/// neighbours counts once, case does not count), else the shortest one that contains `word`; empty when there is none. Of
/// equals the first wins.
[[nodiscard]] std::string nearest_name(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace cpfit
