# The CUDA toolkit, NCCL and cuDNN where they exist; without them the same program is built without a GPU part, and says so.
# Sets CPFIT_CUDA_FOUND, CPFIT_NCCL_FOUND, CPFIT_CUDNN_FOUND.
option(CPFIT_CUDA "Build the CUDA part where a toolkit exists" ON)
