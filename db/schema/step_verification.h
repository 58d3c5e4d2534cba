// The schema step of attention compared with the truth.
#pragma once

namespace cpfit {

extern const char* const kVerificationStep;  // SQL, see db/schema/steps.h

}  // namespace cpfit
