// The schema step of recipe bundles, and of the texts that a run was computed from.
#pragma once

namespace cpfit {

extern const char* const kBundleStep;  // SQL, see db/schema/steps.h

}  // namespace cpfit
