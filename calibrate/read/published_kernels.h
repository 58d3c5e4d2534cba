// Private to calibrate/read: kernel tables (kernel_table.h) as measured kernels.
#pragma once

#include "calibrate/read/kernel_table.h"
#include "calibrate/read/published_row.h"

namespace cpfit::published {

/// Files every measurement, and every unused line once.
void add_kernels(const KernelTable& table, Reading& reading);

}  // namespace cpfit::published
