// Reads each launcher's variables, derives a port when none is given, and finds the first host.
#include <brigade/dist/rendezvous/launch/environment.h>

#include <brigade/core/error.h>
#include <brigade/core/fnv.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::dist {
namespace {

// Derived ports lie below Linux's range of ephemeral ports.
constexpr int kFirstDerivedPort = 20000;
constexpr int kDerivedPorts = 12000;
constexpr const char* kHydraProxy = "BRIGADE_HYDRA_PROXY";

constexpr const char* kHowToStart =
    "start the program with `brigade run -n 2 PROGRAM`, torchrun, mpirun or srun, or set for example RANK=0 "
    "WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500";

std::string value_of(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

bool is_set(const Variables& variables, const std::string& name) { return !value_of(variables, name).empty(); }

// The variable as a number; -1 when it is not set.
int number(const Variables& variables, const std::string& name) {
  const std::string text = value_of(variables, name);
  if (text.empty()) return -1;
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (*end != '\0' || value < 0 || value > std::numeric_limits<int>::max())
    throw DistError("rendezvous: the environment variable {} must be a whole number from 0 to 2147483647, got '{}'",
                    name, text);
  return static_cast<int>(value);
}

// A launcher's name and its variables; "" for a variable that it does not set.
struct Names {
  const char* launcher;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
};

std::optional<LaunchedRank> read_rank(const Variables& variables, const Names& names) {
  const int rank = number(variables, names.rank);
  const int size = number(variables, names.world_size);
  if (rank < 0 && size < 0) return std::nullopt;
  if (rank < 0 || size < 0) {
    const char* found = rank < 0 ? names.world_size : names.rank;
    const char* missing = rank < 0 ? names.rank : names.world_size;
    throw DistError("rendezvous: {} is set ({}), but {} is not; set both or neither: {}", found,
                    value_of(variables, found), missing, kHowToStart);
  }
  LaunchedRank result{names.launcher, rank, size};
  result.local_rank = number(variables, names.local_rank);
  result.local_world_size = number(variables, names.local_world_size);
  return result;
}

std::optional<LaunchedRank> find_torchrun(const Variables& variables) {
  // A batch script may export only WORLD_SIZE: then srun or mpirun sets the rank.
  if (!is_set(variables, "RANK")) return std::nullopt;
  return read_rank(variables, {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
}

std::optional<LaunchedRank> find_open_mpi(const Variables& variables) {
  auto result = read_rank(variables, {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"});
  if (!result) return result;
  result->job = value_of(variables, "PMIX_NAMESPACE");
  if (result->job.empty()) result->job = value_of(variables, "OMPI_MCA_ess_base_jobid");
  return result;
}

// Number of ranks on this node, from a list of counts for the nodes in order, like "2(x3),1". -1 when the list does not
// cover the node.
int tasks_on_node(const std::string& list, int node) {
  const char* at = list.c_str();
  while (*at) {
    char* end = nullptr;
    const long tasks = std::strtol(at, &end, 10);
    if (end == at) return -1;
    long nodes = 1;
    if (end[0] == '(' && end[1] == 'x') {
      nodes = std::strtol(end + 2, &end, 10);
      if (*end != ')') return -1;
      ++end;
    }
    if (node < nodes) return static_cast<int>(tasks);
    node -= static_cast<int>(nodes);
    at = *end == ',' ? end + 1 : end;
  }
  return -1;
}

std::optional<LaunchedRank> find_slurm(const Variables& variables) {
  // Batch scripts have a SLURM_PROCID, but no step.
  const std::string step = value_of(variables, is_set(variables, "SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID");
  if (step.empty()) return std::nullopt;
  const char* tasks = is_set(variables, "SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  auto result = read_rank(variables, {"Slurm", "SLURM_PROCID", tasks, "SLURM_LOCALID", ""});
  if (!result) return result;
  // A shell of `srun --pty` is a step of one task. Steps started from that shell inherit the port.
  if (result->world_size == 1 && is_set(variables, "SLURM_PTY_PORT")) return std::nullopt;
  result->job = fmt::format("{}.{}", value_of(variables, "SLURM_JOB_ID"), step);
  if (number(variables, "SLURM_STEP_NUM_NODES") == 1) {
    result->local_world_size = result->world_size;
  } else {
    const int node = number(variables, "SLURM_NODEID");
    if (node >= 0) result->local_world_size = tasks_on_node(value_of(variables, "SLURM_STEP_TASKS_PER_NODE"), node);
  }
  return result;
}

std::optional<LaunchedRank> find_mpich(const Variables& variables) {
  auto result = read_rank(variables, {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"});
  if (!result) return result;
  // srun --mpi=pmi2 sets these too: then it is a step of Slurm, whose variables contain more.
  if (const auto slurm = find_slurm(variables);
      slurm && slurm->rank == result->rank && slurm->world_size == result->world_size)
    return slurm;
  result->job = value_of(variables, "PMI_JOBID");
  // Each host has its own Hydra proxy, so its name identifies the run only on one host.
  if (result->job.empty() && result->on_one_host()) result->job = value_of(variables, kHydraProxy);
  return result;
}

std::optional<LaunchedRank> find_pmix(const Variables& variables) {
  if (!is_set(variables, "PMIX_RANK")) return std::nullopt;
  throw DistError(
      "rendezvous: PMIX_RANK is set ({}), but no variable tells the number of ranks; let the launcher set RANK, "
      "WORLD_SIZE, MASTER_ADDR and MASTER_PORT for each rank",
      value_of(variables, "PMIX_RANK"));
}

// Reads a process's name (such as "hydra_pmi_proxy"), the pid of its parent and its start time; false when it has
// ended.
bool read_process(long pid, std::string& name, long& parent, std::string& start) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(in, line)) return false;
  const size_t open = line.find('(');
  const size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return false;
  name = line.substr(open + 1, close - open - 1);
  // After the name: state, parent, ...; the 20th of these fields is the start time.
  std::istringstream rest(line.substr(close + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;)
    fields.push_back(field);
  if (fields.size() < 20) return false;
  parent = std::atol(fields[1].c_str());
  start = fields[19];
  return true;
}

std::string find_hydra_proxy() {
  std::string name, start;
  long parent = 0;
  for (long pid = getppid(); pid > 1 && read_process(pid, name, parent, start); pid = parent) {
    if (name.starts_with("hydra_")) return fmt::format("{}.{}", pid, start);
  }
  return "";
}

}  // namespace

Variables launch_variables() {
  Variables variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  if (is_set(variables, "PMI_RANK") && !is_set(variables, "PMI_JOBID")) variables[kHydraProxy] = find_hydra_proxy();
  return variables;
}

std::optional<LaunchedRank> find_launched_rank(const Variables& variables) {
  for (const auto find : {&find_torchrun, &find_open_mpi, &find_mpich, &find_slurm, &find_pmix}) {
    const std::optional<LaunchedRank> found = find(variables);
    if (!found) continue;
    if (found->world_size < 1 || found->rank >= found->world_size)
      throw DistError("rendezvous: {} says rank {} of a world of {}: expected 0 <= rank < world size", found->launcher,
                      found->rank, found->world_size);
    const int exported = number(variables, "WORLD_SIZE");
    if (exported >= 0 && exported != found->world_size)
      throw DistError("rendezvous: WORLD_SIZE is {}, but {} has started {} ranks; leave WORLD_SIZE out", exported,
                      found->launcher, found->world_size);
    return found;
  }
  if (is_set(variables, "WORLD_SIZE"))
    throw DistError("rendezvous: WORLD_SIZE is set ({}), but RANK is not; set both or neither: {}",
                    value_of(variables, "WORLD_SIZE"), kHowToStart);
  return std::nullopt;
}

LaunchedRank launched_rank(const Variables& variables) {
  if (const std::optional<LaunchedRank> found = find_launched_rank(variables)) return *found;
  throw DistError("rendezvous: no launcher has set a rank and a world size{}; {}",
                  is_set(variables, "SLURM_JOB_ID")
                      ? " (this is Slurm's batch script or a shell in its allocation, not a task of srun)"
                      : "",
                  kHowToStart);
}

MeetingPlace find_meeting_place(const Variables& variables, const LaunchedRank& launched) {
  MeetingPlace place;
  place.hosted_by_launcher = is_set(variables, "BRIGADE_AGENT_STORE");
  const bool alone = launched.world_size == 1 && !place.hosted_by_launcher;
  place.port = number(variables, "MASTER_PORT");
  if (place.port > 65535 || (place.port == 0 && !alone))
    throw DistError("rendezvous: MASTER_PORT must be between 1 and 65535, got {}", place.port);
  if (place.port > 0) {
    // torchrun may host its own store on that port, with a different protocol.
    if (value_of(variables, "TORCHELASTIC_USE_AGENT_STORE") == "True" && !place.hosted_by_launcher) ++place.port;
  } else if (alone) {
    place.port = 0;
  } else if (!launched.job.empty()) {
    place.port = kFirstDerivedPort + static_cast<int>(fnv(launched.launcher + launched.job) % kDerivedPorts);
  } else {
    throw DistError(
        "rendezvous: rank {} of {} under {}: no port for the ranks to meet at; set the environment variable "
        "MASTER_PORT, the same on every rank (for example 29500{})",
        launched.rank, launched.world_size, launched.launcher,
        launched.launcher == "MPICH" ? ": mpirun -genv MASTER_PORT 29500" : "");
  }
  place.address = value_of(variables, "MASTER_ADDR");
  if (!place.address.empty()) return place;
  // Variables that the user has set by hand, without a number of ranks per host, are for one host.
  const bool by_hand = launched.local_world_size < 0 && launched.job.empty();
  if (launched.on_one_host() || by_hand) {
    place.address = "127.0.0.1";
  } else if (launched.launcher == "Slurm") {
    const std::string step = value_of(variables, "SLURM_STEP_NODELIST");
    place.address = first_host(step.empty() ? value_of(variables, "SLURM_JOB_NODELIST") : step);
  }
  if (place.address.empty())
    throw DistError(
        "rendezvous: {} has started {} ranks, {} of them on this host, and no variable tells where rank 0 is; set the "
        "environment variable MASTER_ADDR on every rank to the address of its host",
        launched.launcher, launched.world_size,
        launched.local_world_size < 0 ? "nobody knows how many" : std::to_string(launched.local_world_size));
  return place;
}

std::optional<std::chrono::milliseconds> timeout_variable(const Variables& variables, const std::string& name) {
  const std::string text = value_of(variables, name);
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const double most = std::chrono::duration<double>(kLongestTimeout).count();
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0.001 && seconds <= most))
    throw DistError("rendezvous: the environment variable {} must be a number of seconds from 0.001 to {}, got '{}'",
                    name, std::chrono::seconds(kLongestTimeout).count(), text);
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

void check_thread_count() {
#ifdef _OPENMP
  constexpr int kFew = 1024;
  const int most = std::max(kFew, 4 * static_cast<int>(std::thread::hardware_concurrency()));
  const int wanted = std::min(omp_get_max_threads(), omp_get_thread_limit());
  if (wanted <= most) return;
  const char* const asked = std::getenv("OMP_NUM_THREADS");
  throw ValueError("expected at most {} threads for each process, got {} ({}); there are {} processors", most, wanted,
                   asked ? fmt::format("OMP_NUM_THREADS={}", asked) : "omp_set_num_threads",
                   std::thread::hardware_concurrency());
#endif
}

std::string first_host(const std::string& list) {
  std::string host;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const size_t close = list.find(']', i);
    if (close == std::string::npos)
      throw DistError("rendezvous: a bracket is not closed in the list of nodes '{}'", list);
    host += list.substr(i + 1, list.find_first_of(",-]", i) - i - 1);
    i = close;
  }
  if (host.empty()) throw DistError("rendezvous: no first node in the list of nodes '{}'", list);
  return host;
}

}  // namespace brigade::dist
