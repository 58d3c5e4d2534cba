# The CUDA toolkit, NCCL and cuDNN where they exist; without them the same program is built without a GPU part, and says so.
# Sets CPFIT_CUDA_FOUND, CPFIT_NCCL_FOUND, CPFIT_CUDNN_FOUND, and CPFIT_CUDA_HEADERS_FOUND: the headers alone serve the tests that
# run the kernels' text on the host, also where sanitizers turn the compiler for GPUs off.
option(CPFIT_CUDA "Build the CUDA part where a toolkit exists" ON)
set(CPFIT_CUDA_ARCHITECTURES "80-real;90a-real;100a-real;100-virtual" CACHE STRING
  "GPUs to build for, in CMake's notation; 'native' builds for the GPU of this machine")
set(CPFIT_CUDNN_FRONTEND "" CACHE PATH
  "Folder that holds cudnn_frontend.h (package nvidia-cudnn-frontend on PyPI); empty: looked for beside cudnn.h")

set(CPFIT_CUDA_FOUND FALSE)
set(CPFIT_NCCL_FOUND FALSE)
set(CPFIT_CUDNN_FOUND FALSE)
set(CPFIT_CUDA_HEADERS_FOUND FALSE)
if(NOT CPFIT_CUDA)
  message(STATUS "the CUDA part is not built: CPFIT_CUDA is OFF")
  return()
endif()
find_package(CUDAToolkit 12.4 QUIET)
if(NOT CUDAToolkit_FOUND)
  message(STATUS "the CUDA part is not built: no CUDA toolkit (12.4 or later) was found")
  return()
endif()

set(CPFIT_CUDA_HEADERS_FOUND TRUE)
add_library(cpfit_cuda_headers INTERFACE IMPORTED)
target_include_directories(cpfit_cuda_headers SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
if(CPFIT_SANITIZE)
  message(STATUS "the CUDA part is not built: sanitizers are on (its kernels' text is tested on the host)")
  return()
endif()

include(CheckLanguage)
if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
endif()
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "the CUDA part is not built: a toolkit is here, but no nvcc that works")
  return()
endif()
set(CMAKE_CUDA_ARCHITECTURES "${CPFIT_CUDA_ARCHITECTURES}")
enable_language(CUDA)
# CMake 3.25 does not know how a newer nvcc spells C++20.
foreach(kind STANDARD EXTENSION)
  if(NOT DEFINED CMAKE_CUDA20_${kind}_COMPILE_OPTION)
    set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
  endif()
endforeach()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CPFIT_CUDA_FOUND TRUE)
if(CPFIT_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CPFIT_CCACHE}")
endif()

# Neither NCCL nor cuDNN has a CMake package of its own. The stub folder of the toolkit is no place to link them from.
# NCCL is not linked: its header alone is needed, the library is looked for when ranks on several GPUs are asked for.
find_path(CPFIT_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(CPFIT_NCCL_INCLUDE)
  set(CPFIT_NCCL_FOUND TRUE)
  add_library(cpfit_nccl INTERFACE IMPORTED)
  target_include_directories(cpfit_nccl SYSTEM INTERFACE "${CPFIT_NCCL_INCLUDE}")
else()
  message(STATUS "ranks on several GPUs are not built: NCCL's header was not found (libnccl-dev)")
endif()

find_path(CPFIT_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CPFIT_CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
find_path(CPFIT_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
  HINTS ${CPFIT_CUDNN_FRONTEND} ${CPFIT_CUDNN_FRONTEND}/include ${CPFIT_CUDNN_INCLUDE})
if(CPFIT_CUDNN_INCLUDE AND CPFIT_CUDNN_LIBRARY AND CPFIT_CUDNN_FRONTEND_INCLUDE)
  set(CPFIT_CUDNN_FOUND TRUE)
  # The frontend is headers only, and compiles small kernels of its own at run time.
  add_library(cpfit_cudnn INTERFACE IMPORTED)
  target_include_directories(cpfit_cudnn SYSTEM INTERFACE "${CPFIT_CUDNN_INCLUDE}" "${CPFIT_CUDNN_FRONTEND_INCLUDE}")
  target_link_libraries(cpfit_cudnn INTERFACE "${CPFIT_CUDNN_LIBRARY}" CUDA::nvrtc)
else()
  message(STATUS "cuDNN's attention is not built: it needs cudnn.h, libcudnn and cudnn_frontend.h (set CPFIT_CUDNN_FRONTEND)")
endif()
