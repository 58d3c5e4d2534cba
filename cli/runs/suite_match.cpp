#include "cli/runs/suite_match.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/verify/names.h"

namespace cpfit::cli {

namespace {

template <class Value>
void add_once(std::vector<Value>& values, const Value& value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

std::string key_of(std::string_view method, std::string_view mask, std::string_view shape, std::string_view layout,
                   std::string_view dtype, std::int32_t cp, std::int32_t inner, std::int64_t length) {
  return fmt::format("{} | {} {} | {} | cp {}{} | {} | {} tokens", method, mask, shape, layout, cp,
                     inner > 0 ? fmt::format(", {} inner", inner) : "", dtype, length);
}

}  // namespace

std::string case_key(const kernels::Case& one) {
  return key_of(one.method, kernels::name_of(one.mask), one.shape, layout_text(one), name_of(one.number), one.cp, one.inner,
                one.query_tokens);
}

std::string case_key(const VerifiedCase& one) {
  return key_of(one.method, one.mask, one.shape, one.layout, one.dtype, one.cp, one.inner, one.length);
}

kernels::SuiteFilter filter_of(const std::vector<VerifiedCase>& cases) {
  kernels::SuiteFilter filter;
  std::vector<std::string> methods, masks, numbers;
  for (const VerifiedCase& one : cases) {
    add_once(methods, one.method);
    add_once(masks, one.mask);
    add_once(numbers, one.dtype);
    add_once(filter.cp, one.cp);
  }
  // Words that this cpfit does not know leave their cases without a match.
  for (const std::string& method : methods) {
    if (methods_named({method}).ok()) filter.methods.push_back(method);
  }
  for (const std::string& mask : masks) {
    if (const auto named = masks_named({mask}); named.ok()) filter.masks.push_back(named->front());
  }
  for (const std::string& number : numbers) {
    if (const auto named = numbers_named({number}); named.ok()) filter.numbers.push_back(named->front());
  }
  std::erase_if(filter.cp, [](std::int32_t cp) { return cp < 2 || cp > 64; });
  return filter;
}

std::map<std::string, kernels::Case> suite_by_key(const std::string& suite, const kernels::SuiteFilter& filter) {
  std::map<std::string, kernels::Case> found;
  // An empty list of the filter would mean everything.
  if (filter.methods.empty() || filter.masks.empty() || filter.cp.empty() || filter.numbers.empty()) return found;
  const auto size = suite == "full" ? kernels::SuiteSize::kFull : kernels::SuiteSize::kQuick;
  for (kernels::Case& one : kernels::suite_cases(size, filter).cases) {
    std::string key = case_key(one);
    found.emplace(std::move(key), std::move(one));
  }
  return found;
}

}  // namespace cpfit::cli
