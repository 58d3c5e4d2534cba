#include "kernels/core/transport.h"
