// The secret of a job under `brigade run`: one for its ranks, from the launcher or from the user.
#include "program.h"

#include <brigade/dist/rendezvous/store.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include <unistd.h>

namespace brigade::test::launcher_secret_test {
using test::contains;
using test::run_program;

namespace {

const std::string kNone = "BRIGADE_SECRET= BRIGADE_SECRET_FILE=";

// The launchers of two nodes, each with its environment; their ranks (one each) tell their secret.
std::pair<test::Outcome, test::Outcome> run_two_nodes(const std::string& first, const std::string& second) {
  const int port = dist::TcpStoreServer("127.0.0.1", 0).port();
  const auto run = [&](int node, const std::string& environment) {
    return run_program(fmt::format("run -n 1 --nnodes 2 --node-rank {} --master-port {} --meeting-timeout {} -- sh -c "
                                   "'echo rank $RANK has \"<$BRIGADE_SECRET>\"'",
                                   node, port, first == second ? 20 : 1.5),
                       environment, 20);
  };
  std::pair<test::Outcome, test::Outcome> outcomes;
  std::thread other([&] { outcomes.second = run(1, second); });
  outcomes.first = run(0, first);
  other.join();
  return outcomes;
}

}  // namespace

TEST_CASE("brigade run gives its ranks one secret, another for each job, and on no command line") {
  const std::string command =
      "run -n 2 --no-prefix -- sh -c 'echo \"$BRIGADE_SECRET\"; cat /proc/$PPID/cmdline /proc/$$/cmdline | tr \"\\0\" "
      "\" \"; echo'";
  const test::Outcome first = run_program(command, kNone);
  CAPTURE(first.output);
  REQUIRE(first.output.size() > 64);
  const std::string secret = first.output.substr(0, 64);
  CHECK(secret.find_first_not_of("0123456789abcdef") == std::string::npos);
  int times = 0;
  for (size_t at = 0; (at = first.output.find(secret, at)) != std::string::npos; at += secret.size())
    ++times;
  CHECK(times == 2);  // once from each rank
  CHECK(contains(first.output, "run -n 2 --no-prefix"));
  CHECK_FALSE(contains(run_program(command, kNone).output, secret));
}

TEST_CASE("a job of brigade run meets by its secret") {
  const std::string command =
      "run -n 2 -- sh -c '[ $RANK = 0 ] || BRIGADE_SECRET=what-somebody-has-guessed; exec \"$0\" train "
      "digits --backend shm --epochs 1 --quiet' \"" +
      std::string(BRIGADE_PROGRAM) + "\"";
  const test::Outcome outcome = run_program(command, kNone + " BRIGADE_MEETING_TIMEOUT=5", 30);
  CAPTURE(outcome.output);
  CHECK(outcome.status != 0);
  CHECK(contains(outcome.output, "refuses rank 1: its job has another secret"));
  CHECK(contains(outcome.output, "has refused rank 1 from 127.0.0.1: its job has another secret"));
  CHECK_FALSE(contains(outcome.output, "what-somebody-has-guessed"));
}

TEST_CASE("the user's own secret, from a variable or a file, goes to the ranks") {
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("brigade-secret-{}", getpid())).string();
  std::ofstream(file) << "the secret of a file\n";
  const std::string command = "run -n 1 -- sh -c 'echo \"<$BRIGADE_SECRET>\"'";
  const std::string from_file = "BRIGADE_SECRET= BRIGADE_SECRET_FILE=" + file;
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  CHECK(contains(run_program(command, from_file).output, "<the secret of a file>"));
  CHECK(contains(run_program(command, "BRIGADE_SECRET=that-of-the-variable BRIGADE_SECRET_FILE=" + file).output,
                 "<that-of-the-variable>"));
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  const test::Outcome readable = run_program(command, from_file);
  CHECK(readable.status == 3);
  CHECK(contains(readable.output, "has mode 644: others could read or change the secret; set it with: chmod 600"));
  std::filesystem::remove(file);
  const test::Outcome shorter = run_program(command, "BRIGADE_SECRET=hunter2");
  CHECK(shorter.status == 1);
  CHECK(contains(shorter.output, "BRIGADE_SECRET must hold a secret of 16 to 256 characters, got 7"));
  CHECK_FALSE(contains(shorter.output, "hunter2"));
}

TEST_CASE("launchers of several nodes meet with the same secret or with none; else each side is told") {
  const std::string secret = "BRIGADE_SECRET=one-for-both-of-them";
  for (const std::string& environment : {secret, kNone}) {
    const auto [first, second] = run_two_nodes(environment, environment);
    CAPTURE(first.output);
    CAPTURE(second.output);
    const std::string has = environment == secret ? "<one-for-both-of-them>" : "<>";
    CHECK(first.status == 0);
    CHECK(second.status == 0);
    CHECK(contains(first.output, "rank 0 has " + has));
    CHECK(contains(second.output, "rank 1 has " + has));
  }
  struct Row {
    std::string first, second, reason;
  };
  for (const Row& row : {Row{secret, kNone, "its job has a secret, and this one has brought none"},
                         Row{kNone, secret, "its job has no secret, and this one has brought one"},
                         Row{secret, "BRIGADE_SECRET=of-another-job-or-so", "its job has another secret"}}) {
    const auto [first, second] = run_two_nodes(row.first, row.second);
    CAPTURE(first.output);
    CAPTURE(second.output);
    CHECK(first.status == 1);
    CHECK(second.status == 1);
    CHECK(contains(first.output, "has refused the launcher of node 1 from 127.0.0.1: " + row.reason));
    CHECK(contains(second.output, "refuses the launcher of node 1: " + row.reason));
    CHECK_FALSE(contains(first.output + second.output, "one-for-both"));
    CHECK_FALSE(contains(first.output + second.output, "of-another-job"));
  }
}

}  // namespace brigade::test::launcher_secret_test
