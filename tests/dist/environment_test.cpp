#include <brigade/dist/rendezvous/launch/environment.h>

#include <brigade/core/error.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

namespace brigade::test::environment_test {
using dist::Variables;

// "Slurm: rank 1 of 4, local 1 of 2, at node03:PORT", "no launcher", or the text of the error. A derived port, which
// the variables do not name, is PORT.
std::string told(const Variables& variables) {
  try {
    const auto rank = dist::find_launched_rank(variables);
    if (!rank) return "no launcher";
    const dist::MeetingPlace place = dist::find_meeting_place(variables, *rank);
    const bool derived = place.port >= 20000 && place.port < 32000 && !variables.contains("MASTER_PORT");
    return fmt::format("{}: rank {} of {}, local {} of {}, at {}:{}{}", rank->launcher, rank->rank, rank->world_size,
                       rank->local_rank, rank->local_world_size, place.address,
                       derived ? "PORT" : std::to_string(place.port),
                       place.hosted_by_launcher ? " in the launcher" : "");
  } catch (const DistError& error) {
    return error.what();
  }
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more)
    variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

const Variables kTorchrun{{"RANK", "1"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "node7"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_RUN_ID", "none"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"OMPI_MCA_ess_base_jobid", "215810049"},
                         {"PMIX_NAMESPACE", "215810049"},
                         {"PMIX_RANK", "1"}};
const Variables kHydra{{"PMI_RANK", "1"},        {"PMI_SIZE", "2"},        {"PMI_FD", "8"},
                       {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}, {"BRIGADE_HYDRA_PROXY", "4711.123456"}};
// A task of `srun` on one node, and one of four tasks on three nodes, as Slurm 22.05 sets them.
const Variables kSlurm{{"SLURM_JOB_ID", "17"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_STEPID", "0"},
                       {"SLURM_PROCID", "1"},
                       {"SLURM_LOCALID", "1"},
                       {"SLURM_NODEID", "0"},
                       {"SLURM_NTASKS", "2"},
                       {"SLURM_STEP_NUM_TASKS", "2"},
                       {"SLURM_STEP_NUM_NODES", "1"},
                       {"SLURM_STEP_TASKS_PER_NODE", "2"},
                       {"SLURM_STEP_NODELIST", "node03"},
                       {"SLURM_JOB_NODELIST", "node[01-03]"},
                       {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.99"}};
const Variables kSlurmNodes = with(kSlurm, {{"SLURM_PROCID", "3"},
                                            {"SLURM_LOCALID", "0"},
                                            {"SLURM_NODEID", "1"},
                                            {"SLURM_NTASKS", "5"},
                                            {"SLURM_STEP_NUM_TASKS", "5"},
                                            {"SLURM_STEP_NUM_NODES", "3"},
                                            {"SLURM_STEP_TASKS_PER_NODE", "3,1(x2)"},
                                            {"SLURM_STEP_NODELIST", "node[02-03,7],gpu1"}});
const Variables kBatchScript{{"SLURM_JOB_ID", "17"}, {"SLURM_PROCID", "0"},         {"SLURM_LOCALID", "0"},
                             {"SLURM_NODEID", "0"},  {"SLURM_NTASKS", "8"},         {"SLURM_TASK_PID", "25746"},
                             {"SLURM_NNODES", "2"},  {"SLURM_JOB_NODELIST", "a,b"}, {"SLURM_TASKS_PER_NODE", "4(x2)"}};

TEST_CASE("what each launcher sets gives the rank, the world and the place to meet") {
  struct Row {
    const char* what;
    Variables variables;
    std::string expected;
  };
  const Row rows[] = {
      {"nothing", {}, "no launcher"},
      {"torchrun", kTorchrun, "torchrun: rank 1 of 4, local 1 of 2, at node7:29500"},
      {"torchrun with a store of its own", with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
       "torchrun: rank 1 of 4, local 1 of 2, at node7:29501"},
      {"brigade run", with(kTorchrun, {{"BRIGADE_AGENT_STORE", "1"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
       "torchrun: rank 1 of 4, local 1 of 2, at node7:29500 in the launcher"},
      {"set by hand, for one host",
       {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1234"}},
       "torchrun: rank 0 of 2, local -1 of -1, at 127.0.0.1:1234"},
      {"a world of one needs no place",
       {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
       "torchrun: rank 0 of 1, local -1 of -1, at 127.0.0.1:0"},
      {"a pod of an indexed job of Kubernetes",
       {{"RANK", "3"},
        {"WORLD_SIZE", "4"},
        {"MASTER_ADDR", "digits-0.digits"},
        {"MASTER_PORT", "29500"},
        {"JOB_COMPLETION_INDEX", "3"}},
       "torchrun: rank 3 of 4, local -1 of -1, at digits-0.digits:29500"},
      {"Open MPI", kOpenMpi, "Open MPI: rank 1 of 2, local 1 of 2, at 127.0.0.1:PORT"},
      {"Open MPI without PMIx", without(kOpenMpi, "PMIX_NAMESPACE"),
       "Open MPI: rank 1 of 2, local 1 of 2, at 127.0.0.1:PORT"},
      {"Open MPI with a port", with(kOpenMpi, {{"MASTER_PORT", "29500"}}),
       "Open MPI: rank 1 of 2, local 1 of 2, at 127.0.0.1:29500"},
      {"Open MPI on two hosts", with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}, {"MASTER_ADDR", "a"}}),
       "Open MPI: rank 1 of 2, local 1 of 1, at a:PORT"},
      {"MPICH", kHydra, "MPICH: rank 1 of 2, local 1 of 2, at 127.0.0.1:PORT"},
      {"MPICH with a port", with(without(kHydra, "BRIGADE_HYDRA_PROXY"), {{"MASTER_PORT", "29500"}}),
       "MPICH: rank 1 of 2, local 1 of 2, at 127.0.0.1:29500"},
      {"another launcher with PMI",
       {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_JOBID", "9.0"}, {"MASTER_ADDR", "a"}},
       "MPICH: rank 0 of 2, local -1 of -1, at a:PORT"},
      {"a task of srun", kSlurm, "Slurm: rank 1 of 2, local 1 of 2, at 127.0.0.1:PORT"},
      {"a task of srun on the second of three nodes", kSlurmNodes, "Slurm: rank 3 of 5, local 0 of 1, at node02:PORT"},
      {"a task of srun with the place of a user", with(kSlurmNodes, {{"MASTER_ADDR", "x"}, {"MASTER_PORT", "7"}}),
       "Slurm: rank 3 of 5, local 0 of 1, at x:7"},
      {"a task of srun --mpi=pmi2", with(kSlurm, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_JOBID", "17.0"}}),
       "Slurm: rank 1 of 2, local 1 of 2, at 127.0.0.1:PORT"},
      {"a script that exports WORLD_SIZE for the tasks of srun", with(kSlurm, {{"WORLD_SIZE", "2"}}),
       "Slurm: rank 1 of 2, local 1 of 2, at 127.0.0.1:PORT"},
      {"a batch script, outside of srun", kBatchScript, "no launcher"},
      {"a shell of salloc", without(kBatchScript, "SLURM_PROCID"), "no launcher"},
      {"a shell of srun --pty",
       with(kSlurm, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PTY_PORT", "16938"}}),
       "no launcher"},
      {"a step that was started from such a shell", with(kSlurm, {{"SLURM_PTY_PORT", "16938"}}),
       "Slurm: rank 1 of 2, local 1 of 2, at 127.0.0.1:PORT"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(told(row.variables) == row.expected);
  }
}

TEST_CASE("a launcher inside another one is the one that counts") {
  // torchrun on each node, started by srun or mpirun.
  CHECK(told(with(kSlurmNodes, kTorchrun)).starts_with("torchrun: rank 1 of 4"));
  CHECK(told(with(kOpenMpi, kTorchrun)).starts_with("torchrun: rank 1 of 4"));
  // mpirun in a batch script, and on a host that it has reached by srun.
  CHECK(told(with(kBatchScript, kOpenMpi)).starts_with("Open MPI: rank 1 of 2"));
  CHECK(told(with(kSlurmNodes, kOpenMpi)).starts_with("Open MPI: rank 1 of 2"));
  const Variables proxy = with(kSlurm, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}});
  CHECK(told(with(proxy, kHydra)).starts_with("MPICH: rank 1 of 2"));
}

TEST_CASE("what is missing or makes no sense is refused: what was found, what is missing, what to set") {
  struct Row {
    Variables variables;
    std::string expected;
  };
  const Row rows[] = {
      {{{"RANK", "0"}}, "RANK is set (0), but WORLD_SIZE is not; set both or neither"},
      {{{"WORLD_SIZE", "2"}}, "WORLD_SIZE is set (2), but RANK is not; set both or neither"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "two"}}, "WORLD_SIZE must be a whole number from 0 to 2147483647, got 'two'"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}},
       "must be a whole number from 0 to 2147483647, got '99999999999'"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "torchrun says rank 2 of a world of 2: expected 0 <= rank < world size"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}},
       "rank 0 of 2 under torchrun: no port for the ranks to meet at; set the "
       "environment variable MASTER_PORT"},
      {with(kTorchrun, {{"MASTER_PORT", "65536"}}), "MASTER_PORT must be between 1 and 65535, got 65536"},
      {with(kTorchrun, {{"MASTER_PORT", "0"}}), "MASTER_PORT must be between 1 and 65535, got 0"},
      {without(kTorchrun, "MASTER_ADDR"),
       "torchrun has started 4 ranks, 2 of them on this host, and no variable tells where rank 0 is; set the "
       "environment variable MASTER_ADDR"},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_JOBID", "9.0"}}, "set the environment variable MASTER_ADDR"},
      {without(kOpenMpi, "OMPI_COMM_WORLD_SIZE"), "OMPI_COMM_WORLD_RANK is set (1), but OMPI_COMM_WORLD_SIZE is not"},
      {with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}), "set the environment variable MASTER_ADDR"},
      {with(kOpenMpi, {{"WORLD_SIZE", "4"}}), "WORLD_SIZE is 4, but Open MPI has started 2 ranks"},
      {without(kHydra, "BRIGADE_HYDRA_PROXY"), "mpirun -genv MASTER_PORT 29500"},
      // The proxies of two hosts are two processes.
      {with(kHydra, {{"MPI_LOCALNRANKS", "1"}}), "rank 1 of 2 under MPICH: no port"},
      {without(kHydra, "PMI_SIZE"), "PMI_RANK is set (1), but PMI_SIZE is not"},
      {with(kSlurmNodes, {{"SLURM_STEP_NODELIST", "node[02-03"}}), "a bracket is not closed in the list of nodes"},
      {{{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "a"}},
       "PMIX_RANK is set (0), but no variable tells the number of ranks"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.expected);
    const std::string text = told(row.variables);
    CAPTURE(text);
    CHECK(text.find(row.expected) != std::string::npos);
  }
  try {
    dist::launched_rank(kBatchScript);
    FAIL("a batch script is no rank");
  } catch (const DistError& error) {
    CHECK(std::string(error.what()).find("Slurm's batch script or a shell in its allocation, not a task of srun") !=
          std::string::npos);
  }
}

TEST_CASE("a port is the same for all ranks of a run, and others for other runs") {
  const auto port = [](const Variables& variables) {
    return dist::find_meeting_place(variables, dist::launched_rank(variables)).port;
  };
  CHECK(port(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}})) == port(kOpenMpi));
  CHECK(port(with(kSlurmNodes, {{"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}})) == port(kSlurmNodes));
  std::set<int> ports;
  for (int job = 1; job <= 20; ++job) {
    for (const char* step : {"0", "1"})
      ports.insert(port(with(kSlurm, {{"SLURM_JOB_ID", std::to_string(job)}, {"SLURM_STEP_ID", step}})));
    ports.insert(port(with(kOpenMpi, {{"PMIX_NAMESPACE", std::to_string(job)}})));
  }
  CHECK(ports.size() > 55);
}

TEST_CASE("the first host of a list of Slurm's") {
  const std::pair<const char*, const char*> rows[] = {{"vm", "vm"},
                                                      {"a,b", "a"},
                                                      {"node[03-05,9]", "node03"},
                                                      {"node[7,9]-ib", "node7-ib"},
                                                      {"n[008]", "n008"},
                                                      {"r[1-2]n[04-05],x", "r1n04"},
                                                      {"gpu-a[1-3],gpu-b", "gpu-a1"}};
  for (const auto& [list, expected] : rows)
    CHECK(dist::first_host(list) == expected);
  for (const char* bad : {"", ",a", "a[1-2", "a[1]["})
    CHECK_THROWS_AS(dist::first_host(bad), DistError);
}

}  // namespace brigade::test::environment_test
