#include "cli/verify/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace cpfit::cli {

namespace {

template <class Value>
Outcome<std::vector<Value>> named(const std::vector<std::string>& words, const std::vector<std::pair<std::string, Value>>& known,
                                  const std::string& option, const std::string& what) {
  std::vector<Value> values;
  for (const std::string& word : words) {
    const auto found = std::ranges::find(known, word, &std::pair<std::string, Value>::first);
    if (found != known.end()) {
      values.push_back(found->second);
      continue;
    }
    std::vector<std::string> names;
    std::string list;
    for (const auto& entry : known) {
      names.push_back(entry.first);
      list += (list.empty() ? "" : ", ") + entry.first;
    }
    const std::string meant = nearest_name(word, names);
    return Problem{"verify.unknown", option, fmt::format("there is no {} '{}'", what, word),
                   meant.empty() ? "Take one of: " + list : fmt::format("Did you mean '{}'? There are: {}", meant, list)};
  }
  return values;
}

}  // namespace

Outcome<std::vector<std::string>> methods_named(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, std::string>> known;
  for (const kernels::Method& method : kernels::methods()) known.emplace_back(method.name, method.name);
  return named(words, known, "--method", "method");
}

Outcome<std::vector<attention::MaskShape>> masks_named(const std::vector<std::string>& words) {
  using attention::MaskShape;
  return named<MaskShape>(words,
                          {{"full", MaskShape::kFull},
                           {"causal", MaskShape::kCausal},
                           {"window", MaskShape::kWindow},
                           {"documents", MaskShape::kDocuments}},
                          "--mask", "mask");
}

Outcome<std::vector<kernels::Number>> numbers_named(const std::vector<std::string>& words) {
  using kernels::Number;
  return named<Number>(words,
                       {{"fp64", Number::kFp64}, {"fp32", Number::kFp32}, {"bf16", Number::kBf16}, {"fp16", Number::kFp16}},
                       "--dtype", "number type");
}

std::string method_list() {
  std::string list;
  for (const kernels::Method& method : kernels::methods()) list += (list.empty() ? "" : ", ") + method.name;
  return list;
}

}  // namespace cpfit::cli
