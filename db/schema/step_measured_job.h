// The schema step of real jobs that were taken in.
#pragma once

namespace cpfit {

extern const char* const kMeasuredJobStep;  // SQL, see db/schema/steps.h

}  // namespace cpfit
