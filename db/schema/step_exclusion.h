// The schema step of measured points that a calibration's fit left out.
#pragma once

namespace cpfit {

extern const char* const kExclusionStep;  // SQL, see db/schema/steps.h

}  // namespace cpfit
