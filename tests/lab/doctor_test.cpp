// brigade doctor: its report on this machine and on autocast.
#include <brigade/amp/autocast.h>

#include "program.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace brigade::test::doctor_test {
using nlohmann::json;
using test::contains;

TEST_CASE("doctor says what will be used here, why there is no GPU, and ends with 3 for what is broken") {
  const test::Streams found = test::run_program_apart("doctor");
  CHECK(found.status == 0);
  CHECK(found.errors == "");
  for (const char* part :
       {"\nprocessor\n", "  instruction set    ", "\ndevices\n", "cuda ", "  shared memory      works", "\nnetwork\n",
        "\nprocess groups\n", "  auto               shm where all"})
    CHECK_MESSAGE(contains(found.output, part), part);
  const json rows = json::parse(test::run_program_apart("doctor --json -").output).at("results");
  size_t cuda = 0;
  for (const json& row : rows) {
    CHECK((row.at("advice") == "") == (row.at("health") == "ok"));
    cuda += row.at("section") == "devices" && row.at("name") == "cuda" && row.at("value") != "";
  }
  CHECK(cuda == 1);
  const test::Streams broken =
      test::run_program_apart("doctor", "TMPDIR=/no-such-folder BRIGADE_SOCKET_IFNAME=nowhere0");
  CHECK(broken.status == 3);
  CHECK(contains(broken.output, "\nx temporary folder   /no-such-folder"));
  CHECK(contains(broken.output, "\nx between hosts      nowhere0: there is no such interface that is up\n"));
}

TEST_CASE("doctor --amp shows the table that operations ask, and says what its words mean") {
  const test::Streams found = test::run_program_apart("doctor --amp");
  CHECK(found.status == 0);
  for (const char* line :
       {"mm                                 lower precision  lower precision  mm\n",
        "softmax                            not listed       float32          softmax\n",
        "binary_cross_entropy               float32          refused          binary_cross_entropy\n",
        "widest:          to the widest dtype among the inputs\n"})
    CHECK_MESSAGE(contains(found.output, line), line);
  const json rows = json::parse(test::run_program_apart("doctor --amp --json -").output).at("results");
  REQUIRE(rows.size() == amp::op_lists().size());
  for (size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].at("operation") == amp::op_lists()[i].name);
    CHECK(rows[i].at("cpu") == amp::name(amp::op_lists()[i].cpu));
    CHECK(rows[i].at("cuda") == amp::name(amp::op_lists()[i].cuda));
  }
}

}  // namespace brigade::test::doctor_test
