// Reads this process's rank and the meeting place from the environment variables of its launcher: torchrun (and brigade
// run), Open MPI, MPICH and others with PMI, or Slurm.
//
// The first of these launchers whose variables are set is used. Missing values have a default where that is safe: the
// address is 127.0.0.1 when all ranks are on one host, and the port, when MASTER_PORT is not set, is
//
// - torchrun (RANK, WORLD_SIZE): none
// - Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE): derived from PMIX_NAMESPACE
// - MPICH (PMI_RANK, PMI_SIZE): derived from PMI_JOBID or, on one host, from the Hydra proxy
// - Slurm (SLURM_PROCID, SLURM_STEP_NUM_TASKS): derived from the job and step ids; on several hosts the address is
//   the first node of the step
//
// torchrun comes first because other launchers start it, once per host, and it inherits their variables. Slurm comes
// last because mpirun uses srun to reach other hosts, and its ranks inherit srun's variables. Slurm's variables are
// also set in batch scripts and in shells of `srun --pty`, which are not ranks: only a task of a step is one.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace brigade::dist {

using Variables = std::map<std::string, std::string>;

// The environment of this process; under MPICH's mpirun also BRIGADE_HYDRA_PROXY, a name of the run derived from the
// process that started the ranks of this host (MPICH has no variable with a name of the run).
Variables launch_variables();

struct LaunchedRank {
  std::string launcher;  // as in the table
  int rank = 0;
  int world_size = 1;
  int local_rank = -1;        // among the ranks of this host; -1: not known
  int local_world_size = -1;  // ranks of this host; -1: not known
  std::string job;            // unique name of this run, the same on all its ranks; "" when not known

  bool on_one_host() const noexcept { return local_world_size == world_size; }
};

// nullopt when no launcher is detected. Throws DistError when one is detected but variables are missing, with the
// variables found, those missing and what to set.
std::optional<LaunchedRank> find_launched_rank(const Variables& variables);
// The same for a program that requires a launcher: throws DistError that explains how to start it.
LaunchedRank launched_rank(const Variables& variables);

struct MeetingPlace {
  std::string address;
  int port = 0;                     // 0: any free port, only for a world of one rank
  bool hosted_by_launcher = false;  // the store runs in brigade run, not in rank 0
};

// Where the ranks of `launched` meet. Throws DistError when it is not given and has no default.
MeetingPlace find_meeting_place(const Variables& variables, const LaunchedRank& launched);

// The value, in seconds, of a timeout variable (BRIGADE_TIMEOUT, BRIGADE_MEETING_TIMEOUT); nullopt when it is not set.
// Throws DistError unless it is a number from 0.001 to the seconds of a year.
std::optional<std::chrono::milliseconds> timeout_variable(const Variables& variables, const std::string& name);
inline constexpr std::chrono::hours kLongestTimeout{24 * 365};
// Throws ValueError when OpenMP would start more threads per region than a process can be expected to get
// (OMP_NUM_THREADS): OpenMP would terminate the process in the first large operation.
void check_thread_count();

// The first host of a Slurm host list: "node[03-05,9]-ib,gpu1" gives "node03-ib". Throws DistError for a list that is
// empty or has an unmatched bracket.
std::string first_host(const std::string& list);

}  // namespace brigade::dist
