#include "sim/plan/kept_memory.h"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace cpfit {

void keep_freed_memory() {
#ifdef __GLIBC__
  (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
  (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
  (void)mallopt(M_TOP_PAD, 1 << 20);
#endif
}

}  // namespace cpfit
