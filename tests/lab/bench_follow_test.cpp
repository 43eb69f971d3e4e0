// brigade bench follow: each line of standard input is answered with a line of times, on every backend; a line that
// names no case ends all ranks and prints what was expected.
#include "program.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace brigade::test::bench_follow_test {

using nlohmann::json;

// The prefix of the shell command may be a pipe into the program.
test::Streams follow(const std::string& what, const std::string& lines, const std::string& backend) {
  return test::run_program_apart("bench follow " + what + " --backend " + backend, "printf '" + lines + "' |");
}

std::vector<json> answers(const std::string& output) {
  std::istringstream stream(output);
  std::vector<json> found;
  for (std::string line; std::getline(stream, line);)
    found.push_back(json::parse(line));
  return found;
}

TEST_CASE("bench follow answers each line in turn with so many times as the line says") {
  for (const std::string backend : {"shm", "threads"}) {
    CAPTURE(backend);
    const test::Streams ddp = follow("ddp", "many strict 3\\n\\n  many local 2 \\nmany strict 1\\n", backend);
    CHECK_MESSAGE(ddp.status == 0, ddp.errors);
    const std::vector<json> steps = answers(ddp.output);
    REQUIRE(steps.size() == 3);
    CHECK(steps[0].at("case") == "many strict 3");
    CHECK(steps[0].at("us").size() == 3);
    CHECK(steps[1].at("us").size() == 2);
    CHECK(steps[2].at("us").size() == 1);
    for (const json& step : steps) {
      for (const double us : step.at("us"))
        CHECK(us > 0);
    }

    const test::Streams reduced = follow("allreduce", "float32 4096 in_place 4\\nbfloat16 6 staged 2", backend);
    CHECK_MESSAGE(reduced.status == 0, reduced.errors);
    const std::vector<json> calls = answers(reduced.output);
    REQUIRE(calls.size() == 2);
    CHECK(calls[0].at("us").size() == 4);
    CHECK(calls[1].at("us").size() == 2);
  }
}

TEST_CASE("bench follow accuracy answers with the error of a long sum, which does not grow with its length") {
  const test::Streams streams = test::run_program_apart(
      "bench follow accuracy", "printf 'dot 1048576\\nsum_columns 262144\\nmv_transposed 4096' |");
  CHECK_MESSAGE(streams.status == 0, streams.errors);
  const std::vector<json> errors = answers(streams.output);
  REQUIRE(errors.size() == 3);
  CHECK(errors[0].at("case") == "dot 1048576");
  for (const json& each : errors)
    CHECK(each.at("error").get<double>() <= 3e-7);
}

TEST_CASE("bench follow says what it expected of a line that names no case") {
  struct Row {
    std::string what, line, expected;
  };
  for (const Row& row : std::vector<Row>{
           {"ddp", "mlp strict", "expected MODEL MODE STEPS, got 2 words"},
           {"ddp", "vgg strict 3", "known are mlp, cnn"},
           {"ddp", "mlp fast 3", "find_unused"},
           {"ddp", "mlp strict 0", "STEPS: expected a whole number from 1 to 1000000, got '0'"},
           {"ddp", "mlp strict 3x", "got '3x'"},
           {"allreduce", "float32 4096 in_place", "expected DTYPE BYTES WAY CALLS, got 3 words"},
           {"allreduce", "half 4096 in_place 1", "unknown dtype 'half'"},
           {"allreduce", "float32 -4 in_place 1", "BYTES: expected a whole number from 1"},
           {"allreduce", "float32 4096 copied 1", "WAY is in_place or staged, got 'copied'"},
       }) {
    CAPTURE(row.line);
    const test::Streams streams = follow(row.what, row.line, "threads");
    CHECK(streams.status == 2);
    CHECK(streams.output.empty());
    CHECK_MESSAGE(test::contains(streams.errors, row.expected), streams.errors);
  }
}

}  // namespace brigade::test::bench_follow_test
