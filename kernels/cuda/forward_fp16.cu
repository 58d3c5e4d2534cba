#include "kernels/cuda/tensor_core_forward.cuh"

template void cpfit::kernels::cuda::launch_tensor_core_forward<__half>(const Target&, const BlockInputs&, const View&,
                                                                       const View&);
