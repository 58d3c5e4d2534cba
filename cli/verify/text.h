// A verification as people read it, and as JSON (DESIGN section 5).
#pragma once

#include <string>

#include "cli/json.h"
#include "model/record/verification.h"

namespace cpfit::cli {

/// Methods by mask with what passed, worst errors by number type, failures, controls, the block, what was left out.
[[nodiscard]] std::string verification_text(const Verification& verification);
[[nodiscard]] Json to_json(const Verification& verification);

/// The five errors of one case beside what they may be; `failed_only` leaves out the tensors that passed.
[[nodiscard]] std::string errors_text(const VerifiedCase& one, bool failed_only);

}  // namespace cpfit::cli
