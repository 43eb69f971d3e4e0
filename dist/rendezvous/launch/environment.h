// Which rank this process is and where the ranks meet, read from the environment variables of the
// launcher that started it: one rule for torchrun (and brigade run), Open MPI, MPICH and others
// with PMI, and Slurm.
//
// The first of these launchers that shows decides. What it leaves open has a default where that is
// safe: the address is 127.0.0.1 when all ranks are on one host, and the port, when MASTER_PORT is
// not set, is
//
// - torchrun (RANK, WORLD_SIZE): none
// - Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE): made from PMIX_NAMESPACE
// - MPICH (PMI_RANK, PMI_SIZE): made from PMI_JOBID or, on one host, from Hydra's process
// - Slurm (SLURM_PROCID, SLURM_STEP_NUM_TASKS): made from the numbers of job and step; on several hosts the address is
//   the first node of the step
//
// torchrun comes first because it is what other launchers start, one per host: then their variables
// are inherited. Slurm comes last because mpirun uses srun to reach other hosts, and its ranks
// inherit what srun set. Slurm's variables stand in batch scripts and in shells of `srun --pty`
// too, which are no ranks: only a task of a step is one.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace brigade::dist {

using Variables = std::map<std::string, std::string>;

// The environment of this process; under MPICH's mpirun also BRIGADE_HYDRA_PROXY, a name of the run
// made of the process that started the ranks of this host (MPICH itself gives it none in a
// variable).
Variables launch_variables();

struct LaunchedRank {
  std::string launcher;  // as in the table
  int rank = 0;
  int world_size = 1;
  int local_rank = -1;        // among the ranks of this host; -1: not known
  int local_world_size = -1;  // ranks of this host; -1: not known
  std::string job;            // what all ranks of this run have in common and other runs have not, "" when not known

  bool on_one_host() const noexcept { return local_world_size == world_size; }
};

// nullopt when no launcher shows. Throws DistError when one shows, but not all that it takes: it
// says what was found, what is missing and what to set.
std::optional<LaunchedRank> find_launched_rank(const Variables& variables);
// The same for a program that is of no use without a launcher: DistError, which says how to start
// it.
LaunchedRank launched_rank(const Variables& variables);

struct MeetingPlace {
  std::string address;
  int port = 0;                     // 0: any free one, which only a world of one rank may have
  bool hosted_by_launcher = false;  // the store runs in brigade run, not in rank 0
};

// Where the ranks of `launched` meet. Throws DistError when that is neither given nor has a
// default.
MeetingPlace find_meeting_place(const Variables& variables, const LaunchedRank& launched);

// The seconds that a variable says (BRIGADE_TIMEOUT, BRIGADE_MEETING_TIMEOUT); nothing when it is not
// set. Throws DistError for what is no number of seconds from 0.001 to those of a year.
std::optional<std::chrono::milliseconds> timeout_variable(const Variables& variables, const std::string& name);
inline constexpr std::chrono::hours kLongestTimeout{24 * 365};
// Throws ValueError where OpenMP would make more threads for each region than a process can be expected
// to get (OMP_NUM_THREADS): it ends the process in the first large operation.
void check_thread_count();

// The first host of a list as Slurm writes it: "node[03-05,9]-ib,gpu1" gives "node03-ib". Throws
// DistError for a list that is empty or has a bracket without its partner.
std::string first_host(const std::string& list);

}  // namespace brigade::dist
