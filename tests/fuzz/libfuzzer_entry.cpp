// The entry of libFuzzer for the target that CPFIT_FUZZ_TARGET names.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cpfit::fuzz::CPFIT_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
