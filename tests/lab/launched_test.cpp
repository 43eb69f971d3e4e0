// The program as one of several processes of a launcher. The launcher's environment is set by hand here;
// tests/dist/launchers.sh uses the real launchers.
#include "program.h"

#include <brigade/dist/groups/backends.h>
#include <brigade/dist/rendezvous/store.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <unistd.h>

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
      {"BRIGADE_TIMEOUT=nan", "train digits", "BRIGADE_TIMEOUT must be a number of seconds from 0.001"},
      {"RANK=0 WORLD_SIZE=2 MASTER_PORT=1 BRIGADE_MEETING_TIMEOUT=-1", "train digits --timeout 9",
       "BRIGADE_MEETING_TIMEOUT must be a number of seconds from 0.001"},
      {"OMP_NUM_THREADS=100000", "run -n 2 true", "expected at most 1024 threads for each process, got 100000"},
      {srun.c_str(), "bench follow allreduce", "start it once, without the launcher"},
      {srun.c_str(), "bench allreduce --ranks 3",
       "--ranks: a launcher has started 2 ranks, which are those of this benchmark"},
      {srun.c_str(), "bench allreduce --backends threads", "the backend threads is for ranks of one process"},
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

TEST_CASE("training under a launcher waits for a rank as long as BRIGADE_TIMEOUT says") {
  const std::string seen =
      (std::filesystem::temp_directory_path() / ("brigade-late-" + std::to_string(getpid()))).string();
  const std::string train = BRIGADE_PROGRAM " train digits --epochs 100000";
  const test::Outcome late = test::run_program("run -n 2 -- sh -c 'if [ $RANK = 0 ]; then BRIGADE_TIMEOUT=1.5 exec " +
                                               train + " 2> " + seen + "; fi; " + train + " & until grep -q loss " +
                                               seen + "; do sleep 0.1; done; kill -STOP $!; exec sleep 39.25'");
  std::ostringstream errors;
  errors << std::ifstream(seen).rdbuf();
  CHECK_MESSAGE(test::contains(errors.str(), "timed out after 1500 ms"), late.output << errors.str());
  CHECK(late.status == 1);
  std::filesystem::remove(seen);
}

TEST_CASE("training between processes finds another folder where TMPDIR is none, or cannot be written to") {
  for (const char* variables : {"TMPDIR=/nowhere", "TMPDIR=/proc"}) {
    const test::Outcome outcome =
        test::run_program("train digits --epochs 1 --ranks 2 --backend shm --quiet", variables);
    CHECK_MESSAGE(outcome.status == 0, outcome.output);
  }
}

TEST_CASE("brigade run in the process of another launcher starts its ranks when it knows how many nodes there are") {
  const std::string srun =
      "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1";
  const test::Outcome outcome = test::run_program("run -n 2 --nnodes 1 sh -c 'echo $RANK of $WORLD_SIZE'", srun);
  CAPTURE(outcome.output);
  CHECK(outcome.status == 0);
  CHECK(test::contains(outcome.output, "[rank 0] 0 of 2"));
  CHECK(test::contains(outcome.output, "[rank 1] 1 of 2"));
  // In a batch script, outside of srun, --nnodes is not needed.
  CHECK(test::run_program("run -n 2 true", "SLURM_JOB_ID=1 SLURM_PROCID=0 SLURM_NTASKS=2").status == 0);
}

int times_in(const std::string& text, const std::string& part) {
  int times = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
    ++times;
  return times;
}

// The ranks run the program that started them.
std::string bench_of(const std::string& json_file) {
  return "-- sh -c 'exec /proc/$PPID/exe bench allreduce --sizes 4K --rounds 2 --json " + json_file + "'";
}

// Checks that there was one job of two ranks, reported by rank 0.
void check_one_job(const std::string& output, const std::string& json_file, const std::string& backend) {
  CAPTURE(output);
  CHECK(times_in(output, "# Out of bounds values") == 1);
  std::ifstream in(json_file);
  const nlohmann::json results = nlohmann::json::parse(in, nullptr, false).value("results", nlohmann::json::array());
  REQUIRE(results.size() >= 1);
  for (const nlohmann::json& row : results) {
    CHECK(row.at("ranks") == 2);
    CHECK(row.at("backend") == backend);
    CHECK(row.at("wrong") == 0);
  }
  std::filesystem::remove(json_file);
}

TEST_CASE("every benchmark of several ranks joins a launcher's job, and one rank prints") {
  struct Row {
    std::string arguments, heading;
  };
  for (const Row& row :
       {Row{"collectives --sizes 4K", "# barrier, shm, 2 ranks"},
        Row{"bucket --sizes 64K --parameters 1 --total 1M --compute 1", "shm, 1 parameter, copies; 2 ranks"},
        Row{"ddp --models mlp", "waiting (for peers), reducing, rest"}, Row{"unused", "2 ranks (auto); 2 rounds"},
        Row{"mechanisms", "2 ranks (auto); 2 rounds"}, Row{"diagnosis", "2 ranks (auto); 2 rounds"},
        Row{"batch-norm", "2 ranks (auto); 2 rounds"}}) {
    const test::Outcome outcome = test::run_program("run -n 2 --no-prefix -- sh -c 'exec /proc/$PPID/exe bench " +
                                                    row.arguments + " --rounds 2'");
    CHECK_MESSAGE(outcome.status == 0, outcome.output);
    CHECK_MESSAGE(times_in(outcome.output, row.heading) == 1, outcome.output);
  }
}

TEST_CASE(
    "a benchmark under a launcher measures the ranks that are there, on one node and on two; rank 0 prints and writes") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("brigade-joined-" + std::to_string(getpid()) + ".json")).string();
  const test::Outcome one = test::run_program("run -n 2 --no-prefix " + bench_of(file));
  CHECK_MESSAGE(one.status == 0, one.output);
  check_one_job(one.output, file, "shm");

  if (!dist::find_backend("gloo").missing.empty()) return;
  // Two nodes, from the ranks' point of view.
  test::Outcome nodes[2];
  const std::string port = std::to_string(dist::TcpStoreServer("127.0.0.1", 0).port());
  const auto start = [&](int node) {
    nodes[node] =
        test::run_program("run -n 1 --nnodes 2 --node-rank " + std::to_string(node) +
                              " --master-addr 127.0.0.1 --master-port " + port + " --no-prefix " + bench_of(file),
                          "BRIGADE_HOST_ID=node" + std::to_string(node));
  };
  std::thread other([&] { start(1); });
  start(0);
  other.join();
  for (const test::Outcome& node : nodes)
    CHECK_MESSAGE(node.status == 0, node.output);
  check_one_job(nodes[0].output + nodes[1].output, file, "gloo");
}

}  // namespace brigade::test::launched_test
