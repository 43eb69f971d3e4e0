// Machine-readable output of every command: --json - prints exactly one object to standard output; --csv a table.
#include "program.h"

#include <brigade/core/error.h>
#include <brigade/lab/results.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <unistd.h>

namespace brigade::test::results_test {

using nlohmann::json;

struct Call {
  std::string command;
  std::string arguments;
  std::vector<std::string> keys;  // required in every row
  int status = 0;
  std::string aside = "";  // the human-readable text, on standard error
};

std::string trace_file() {
  return (std::filesystem::temp_directory_path() / ("brigade-results-trace-" + std::to_string(getpid()) + ".json"))
      .string();
}

std::vector<Call> calls() {
  const std::vector<std::string> fault{"id",      "title",    "control", "passed",
                                       "skipped", "detected", "in_time", "verdicts"};
  const std::vector<std::string> training{"recipe", "ranks",   "backend",  "device",
                                          "loss",   "metrics", "warnings", "step_ms"};
  const std::vector<std::string> micro{"case", "dtype", "device", "time_us"};
  const std::vector<std::string> steps{
      "mode", "ranks", "layers", "width", "step_ms", "ratios", "backend", "collectives_per_step", "bytes_per_step"};
  const std::vector<std::string> collective{"collective", "backend",    "ranks",    "dtype",  "op",
                                            "bytes",      "count",      "in_place", "memory", "time_us",
                                            "algbw_GBps", "busbw_GBps", "wrong"};
  return {
      // One epoch is too few: a detected failure is a result, too.
      {"demo", "--epochs 1", {}, 1, "NOT all as expected"},
      {"run",
       "-n 2 -- sh -c 'echo out; echo aside >&2'",
       {"command", "exit_code", "summary", "ranks"},
       0,
       "[rank 1] out"},
      {"run", "-n 1 -- sh -c 'exit 7'", {"command", "exit_code", "summary", "ranks"}, 7, "status 7"},
      {"train", "digits --epochs 1", training, 0, "held-out accuracy"},
      {"train", "digits --epochs 1 --backend threads", training, 0, "held-out accuracy"},
      {"diagnose", "UNU-01", fault, 0, "1 of 1 as expected"},
      {"diagnose", "--list", {"id", "title", "control"}, 0, "UNU-01"},
      {"claims", "004.5", {"row", "said", "advised", "instead", "as_expected"}, 0, "1 of 1 as measured before"},
      {"check", "--all --only relu", {"case", "op", "dtype", "passed", "max_abs"}, 0, "0 failed"},
      {"explain",
       "digits",
       {"module", "ranks", "backend", "parameters", "buckets", "ready_order", "users", "traceEvents"},
       0,
       "Ready order"},
      {"doctor", "", {"section", "name", "value", "health", "advice"}, 0, "instruction set"},
      {"doctor", "--amp", {"operation", "cpu", "cuda", "torch", "why"}, 0, "lower precision"},
      {"bench collectives", "--backend shm --sizes 4K --rounds 1", collective, 0, "busbw"},
      {"bench allreduce", "--backend shm --sizes 4K --rounds 1", collective, 0, "out-of-place"},
      {"bench amp", "--rounds 1 --cases 'autocast, add'", micro, 0, "us, median"},
      {"bench ops", "--rounds 1 --cases '^matmul 64 '", micro, 0, "us, median"},
      {"bench ops", "--list", {"case", "dtype"}, 0, "matmul"},
      {"bench autograd", "--rounds 1 --cases add", micro, 0, "ns, median"},
      {"bench optim", "--rounds 1 --cases '^SGD 10M in 1$'", micro, 0, "us, median"},
      {"bench unused", "--layers 10 --width 4 --steps 2", steps, 0, "strict again"},
      {"bench diagnosis", "--layers 1 --width 4 --steps 2", steps, 0, "off again"},
      {"bench mechanisms", "--layers 1 --width 4 --steps 2", steps, 0, "powersgd_hook"},
      {"bench bucket",
       "--only-terms --backends threads --sizes 64K --parameters 4 --rounds 1",
       {"what", "backend", "ranks", "bytes", "parameters", "dtype", "hook", "gradients", "time_us", "sum_us",
        "terms_us"},
       0,
       "flatten"},
      {"bench ddp",
       "--models mlp --modes local,strict --backends threads --rounds 1",
       {"model", "ranks", "backend", "link", "mode", "pinned", "bytes", "tensors", "step_ms", "ratios", "noise"},
       0,
       "strict"},
      {"bench replay",
       trace_file() + " --backends threads --rounds 1",
       {"module", "backend", "ranks", "buckets", "steps", "recorded_ms", "step_ms", "ratio", "overlap", "rounds"},
       0,
       "recorded"},
      {"bench batch-norm", "--layers 1 --width 4 --steps 2", steps, 0, "SyncBatchNorm"},
  };
}

// The names under "Subcommands:" in the help.
std::set<std::string> subcommands(const std::string& of) {
  std::istringstream help(test::run_program_apart(of + " --help").output);
  std::set<std::string> names;
  bool there = false;
  for (std::string line; std::getline(help, line);) {
    if (line.rfind("Subcommands:", 0) == 0 || line.rfind("SUBCOMMANDS:", 0) == 0) {
      there = true;
    } else if (there && line.size() > 2 && line.rfind("  ", 0) == 0 && line[2] != ' ') {
      names.insert(line.substr(2, line.find(' ', 2) - 2));
    } else if (there && !line.empty() && line[0] != ' ') {
      break;
    }
  }
  return names;
}

TEST_CASE("--json - puts one JSON object on standard output, and nothing else, whatever the command") {
  std::set<std::string> called;
  REQUIRE(test::run_program("train digits --quiet --epochs 1 --trace " + trace_file()).status == 0);
  for (const Call& call : calls()) {
    called.insert(call.command);
    const std::string dashes = call.command == "run" ? "--json - " + call.arguments : call.arguments + " --json -";
    CAPTURE(call.command);
    CAPTURE(dashes);
    const test::Streams found = test::run_program_apart(call.command + " " + dashes);
    CAPTURE(found.errors);
    CHECK(found.status == call.status);
    json output;
    REQUIRE_NOTHROW(output = json::parse(found.output));
    for (const char* key : {"command", "version", "commit", "machine", "results"})
      CHECK(output.contains(key));
    CHECK(output.size() == 5);
    CHECK(output.at("command").at(0) == "brigade");
    CHECK(!output.at("results").empty());
    for (const json& row : output.at("results")) {
      for (const std::string& key : call.keys)
        CHECK_MESSAGE(row.contains(key), key);
    }
    CHECK_MESSAGE(test::contains(found.errors, call.aside), call.aside);
  }
  // Every command is covered.
  for (const std::string& name : subcommands("")) {
    if (name != "bench") CHECK_MESSAGE(called.contains(name), name);
  }
  const std::set<std::string> benchmarks = subcommands("bench");
  CHECK(benchmarks.size() == 14);
  // "bench follow" answers line by line, without --json.
  for (const std::string& name : benchmarks)
    CHECK_MESSAGE((called.contains("bench " + name) || name == "follow"), name);
  std::filesystem::remove(trace_file());
}

TEST_CASE("what a command says does not depend on where its JSON goes") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("brigade-results-" + std::to_string(getpid()) + ".json")).string();
  const test::Streams plain = test::run_program_apart("diagnose --list --json " + file);
  CHECK(plain.errors == "");
  CHECK(test::contains(plain.output, "UNU-01"));
  std::ifstream in(file);
  const json written = json::parse(in);
  const json printed = json::parse(test::run_program_apart("diagnose --list --json -").output);
  CHECK(written.at("results") == printed.at("results"));
  std::filesystem::remove(file);
  CHECK(test::run_program("diagnose --list --json - > /dev/full").status == 3);
}

TEST_CASE("--csv writes a line of titles and a line for each row") {
  const test::Streams found = test::run_program_apart("bench allreduce --backend shm --sizes 4K,8K --rounds 1 --csv -");
  CHECK(found.status == 0);
  std::istringstream lines(found.output);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);)
    all.push_back(line);
  REQUIRE(all.size() == 1 + 2 * 2 * 2);  // sizes, kinds of memory, out of place and in place
  CHECK(test::contains("," + all[0] + ",", ",time_us.median,"));
  for (const std::string& line : all)
    CHECK(std::count(line.begin(), line.end(), ',') == std::count(all[0].begin(), all[0].end(), ','));
}

TEST_CASE("rows as CSV: columns of nested values, quoted fields, empty fields") {
  const json rows{{{"name", "a, \"b\""}, {"time", {{"median", 1.5}, {"n", 3}}}},
                  {{"name", "plain"}, {"list", {1, 2}}, {"good", true}, {"none", nullptr}}};
  CHECK(lab::to_csv(rows) ==
        "name,time.median,time.n,good,list,none\n"
        "\"a, \"\"b\"\"\",1.5,3,,,\n"
        "plain,,,true,\"[1,2]\",\n");
  CHECK(lab::to_csv(json::array()) == "\n");
}

}  // namespace brigade::test::results_test
