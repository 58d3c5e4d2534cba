#include "kernels/cuda/tensor_core_backward.cuh"

template void cpfit::kernels::cuda::launch_tensor_core_backward<__half>(const Target&, const BlockInputs&, const BlockGradients&);
