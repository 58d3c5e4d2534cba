# Third-party libraries, all from the distribution. Each floor links only what the table in README.md allows it.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(tomlplusplus REQUIRED CONFIG)
find_package(Boost 1.74 REQUIRED CONFIG)      # Boost.Graph, headers only, private to model/cluster
find_package(pugixml REQUIRED CONFIG)         # model/cluster/import: NCCL and hwloc XML
find_package(TBB REQUIRED CONFIG)             # sim
find_package(ZLIB REQUIRED)                   # calibrate/read: compressed traces
find_path(CPFIT_RAPIDJSON_INCLUDE rapidjson/reader.h REQUIRED)  # calibrate/read: traces as a stream
add_library(cpfit_rapidjson INTERFACE IMPORTED)
target_include_directories(cpfit_rapidjson SYSTEM INTERFACE "${CPFIT_RAPIDJSON_INCLUDE}")
find_package(Eigen3 REQUIRED CONFIG)          # calibrate/fit
find_package(Ceres REQUIRED CONFIG)           # calibrate/fit
find_package(SQLite3 REQUIRED)                # db
find_package(SQLiteCpp REQUIRED CONFIG)       # db
find_package(CLI11 REQUIRED CONFIG)           # cli
# kernels/reference: matrix products of the CPU attention.
find_path(CPFIT_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas x86_64-linux-gnu openblas-pthread REQUIRED)
find_library(CPFIT_OPENBLAS_LIBRARY openblas REQUIRED)
add_library(cpfit_blas INTERFACE IMPORTED)
target_include_directories(cpfit_blas SYSTEM INTERFACE "${CPFIT_CBLAS_INCLUDE}")
target_link_libraries(cpfit_blas INTERFACE "${CPFIT_OPENBLAS_LIBRARY}")
# kernels/transport and cpfit-bench: ranks as processes.
find_package(MPI COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  message(STATUS "ranks as MPI processes are not built: no MPI was found (libopenmpi-dev)")
endif()
# cpfit-gui: all or nothing.
set(CPFIT_GUI_FOUND FALSE)
find_package(Qt6 6.4 QUIET COMPONENTS Widgets PrintSupport Svg)
find_package(QCustomPlotQt6 QUIET CONFIG)
if(NOT Qt6_FOUND)
  set(CPFIT_GUI_MISSING "Qt 6.4 with Widgets, PrintSupport and Svg was not found (qt6-base-dev, qt6-svg-dev)")
elseif(NOT QCustomPlotQt6_FOUND)
  set(CPFIT_GUI_MISSING "the Qt 6 build of QCustomPlot was not found (libqcustomplot-dev)")
else()
  set(CPFIT_GUI_FOUND TRUE)
endif()
if(CPFIT_BUILD_TESTS)
  find_package(GTest REQUIRED)
  if(CPFIT_GUI_FOUND)
    find_package(Qt6 6.4 REQUIRED COMPONENTS Test)
  endif()
endif()
if(CPFIT_BUILD_BENCHMARKS)
  find_package(benchmark CONFIG)
  if(NOT benchmark_FOUND)
    message(STATUS "benchmarks are not built: Google Benchmark was not found (libbenchmark-dev)")
  endif()
endif()
# SimGrid simulates the same flows beside our engine, in tests and benchmarks only. Its actors change stacks, which sanitizers do
# not follow.
if(CPFIT_BUILD_TESTS AND NOT CPFIT_SANITIZE)
  find_path(CPFIT_SIMGRID_INCLUDE simgrid/s4u.hpp)
  find_library(CPFIT_SIMGRID_LIBRARY simgrid)
endif()
if(CPFIT_SIMGRID_INCLUDE AND CPFIT_SIMGRID_LIBRARY)
  add_library(cpfit_simgrid INTERFACE IMPORTED)
  target_include_directories(cpfit_simgrid SYSTEM INTERFACE "${CPFIT_SIMGRID_INCLUDE}")
  target_link_libraries(cpfit_simgrid INTERFACE "${CPFIT_SIMGRID_LIBRARY}")
  target_compile_definitions(cpfit_simgrid INTERFACE CPFIT_SIMGRID)
else()
  message(STATUS "the engine is not compared with SimGrid: it was not found (libsimgrid-dev), or sanitizers are on")
endif()
