// Stored cases of a verification and the cases of the suite that made them: matched by what they ran, so that a stored one can be
// repeated with its seed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/verify/suite.h"
#include "model/record/verification.h"

namespace cpfit::cli {

/// Method, mask, shape, layout, number type, degrees and length: what tells the cases of a suite apart.
[[nodiscard]] std::string case_key(const kernels::Case& one);
[[nodiscard]] std::string case_key(const VerifiedCase& one);

/// The filter that a verification of these cases was made with, as far as they tell it.
[[nodiscard]] kernels::SuiteFilter filter_of(const std::vector<VerifiedCase>& cases);

/// Cases of the suite by key; those that this cpfit does not know are not in it.
[[nodiscard]] std::map<std::string, kernels::Case> suite_by_key(const std::string& suite, const kernels::SuiteFilter& filter);

}  // namespace cpfit::cli
