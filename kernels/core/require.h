// Our own mistakes (shapes that do not match, a rank outside its group) stop the program with the values.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace cpfit::kernels {

template <class... Values>
void require(bool holds, fmt::format_string<Values...> sentence, Values&&... values) {
  if (holds) return;
  fmt::print(stderr, "kernels: {}\n", fmt::format(sentence, std::forward<Values>(values)...));
  std::abort();
}

}  // namespace cpfit::kernels
