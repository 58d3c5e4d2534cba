// How ranks are started as MPI processes on this machine: the words and the environment of mpirun.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/child_process.h"

namespace cpfit::cli {

/// `mpirun -n ranks program arguments…`, more ranks than cores allowed. As root Open MPI wants to be told that it may: it is.
/// Each rank computes on one thread, since ranks share the cores.
[[nodiscard]] ChildCommand mpi_command(std::int32_t ranks, const std::string& program, const std::vector<std::string>& arguments);

/// Why a job of ranks ended, for a person: what the first rank to fail said, or what mpirun says of a rank that died; else as
/// outcome_text.
[[nodiscard]] std::string mpi_outcome_text(const ChildCommand& command, const ChildResult& result);

/// The path of mpirun, of PATH; empty when there is none.
[[nodiscard]] std::string find_mpirun();

/// The program `name` of the same build or installation: beside this one, where the build puts it, or in PATH. Empty: not found.
[[nodiscard]] std::string find_companion(const std::string& name);

}  // namespace cpfit::cli
