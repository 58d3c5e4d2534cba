// For work whose failure becomes a sentence of its job: the value of an outcome, or an Error with its first problem.
#pragma once

#include <utility>

#include "model/quantity/problem.h"

namespace cpfit::gui {

template <class Value>
[[nodiscard]] Value taken(Outcome<Value> outcome) {
  if (!outcome.ok()) throw Error(to_text(outcome.problems().front()));
  return std::move(outcome).value();
}

}  // namespace cpfit::gui
