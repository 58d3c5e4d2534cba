// The schema step of calibrations.
#pragma once

namespace cpfit {

extern const char* const kCalibrationStep;  // SQL, see db/schema/steps.h

}  // namespace cpfit
