#include "kernels/core/cut.h"
