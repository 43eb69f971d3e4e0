// The program as one of several processes of a launcher: what that looks like is set here by hand; the real launchers
// are in tests/dist/launchers.sh.
#include "program.h"

#include <doctest/doctest.h>

#include <string>

namespace brigade::test::launched_test {

TEST_CASE("what a launcher left out, or what contradicts it, is wrong usage before anything starts") {
  struct Row {
    const char* environment;
    const char* arguments;
    const char* expected;
  };
  const std::string srun =
      "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1";
  const Row rows[] = {
      {"RANK=0", "train digits", "RANK is set (0), but WORLD_SIZE is not"},
      {"RANK=0 WORLD_SIZE=2", "train digits",
       "no port for the ranks to meet at; set the environment variable MASTER_PORT"},
      {"PMIX_RANK=0", "train digits", "PMIX_RANK is set (0), but no variable tells the number of ranks"},
      {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1 PMIX_NAMESPACE=1", "train digits",
       "set the environment variable MASTER_ADDR"},
      {srun.c_str(), "train digits --ranks 3", "--ranks 3, but the launcher has started 2 ranks"},
      {srun.c_str(), "demo", "start it once, without the launcher"},
      {srun.c_str(), "diagnose UNU-01 --backend threads", "start it once, without the launcher"},
      {srun.c_str(), "explain digits", "start it once, without the launcher"},
      {srun.c_str(), "bench allreduce", "start it once, without the launcher"},
      {"BRIGADE_TIMEOUT=nan", "train digits", "BRIGADE_TIMEOUT must be a number of seconds from 0.001"},
      {"RANK=0 WORLD_SIZE=2 MASTER_PORT=1 BRIGADE_MEETING_TIMEOUT=-1", "train digits --timeout 9",
       "BRIGADE_MEETING_TIMEOUT must be a number of seconds from 0.001"},
      {"OMP_NUM_THREADS=100000", "run -n 2 true", "expected at most 1024 threads for each process, got 100000"},
      {srun.c_str(), "run -n 2 true", "process 0 of 2 of Slurm, and each would start a job of its own"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.environment);
    CAPTURE(row.arguments);
    const test::Outcome outcome = test::run_program(row.arguments, row.environment);
    CAPTURE(outcome.output);
    CHECK(outcome.status == 2);
    CHECK(test::contains(outcome.output, row.expected));
    CHECK(outcome.seconds < 20);
  }
}

TEST_CASE("training under a launcher: the variables' times count, and all ranks have to ask for the same backend") {
  const test::Outcome late = test::run_program(
      "run -n 2 -- sh -c 'if [ $RANK = 1 ]; then exec sleep 38.25; fi; BRIGADE_MEETING_TIMEOUT=0.2 exec " BRIGADE_PROGRAM
      " train digits'",
      "", 30);
  CHECK_MESSAGE(test::contains(late.output, "rank 0 waited 200 ms for rank 1 of 2"), late.output);
  const test::Outcome differ =
      test::run_program("run -n 2 -- sh -c 'if [ $RANK = 1 ]; then b=gloo; else b=shm; fi; exec " BRIGADE_PROGRAM
                        " train digits --backend $b'",
                        "", 60);
  CHECK(differ.status == 1);
  CHECK_MESSAGE(test::contains(differ.output, "backends differ: rank 0 asks for shm, rank 1 for gloo"), differ.output);
}

TEST_CASE("brigade run in the process of another launcher starts its ranks when it is told how many nodes there are") {
  const std::string srun =
      "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1";
  const test::Outcome outcome = test::run_program("run -n 2 --nnodes 1 sh -c 'echo $RANK of $WORLD_SIZE'", srun);
  CAPTURE(outcome.output);
  CHECK(outcome.status == 0);
  CHECK(test::contains(outcome.output, "[rank 0] 0 of 2"));
  CHECK(test::contains(outcome.output, "[rank 1] 1 of 2"));
  // In a batch script, outside of srun, nothing needs to be said.
  CHECK(test::run_program("run -n 2 true", "SLURM_JOB_ID=1 SLURM_PROCID=0 SLURM_NTASKS=2").status == 0);
}

}  // namespace brigade::test::launched_test
