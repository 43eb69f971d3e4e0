// brigade doctor: what it says of this machine, and of autocast.
#include <brigade/amp/op_lists.h>

#include "program.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace brigade;
using nlohmann::json;
using test::contains;

TEST_CASE("doctor names the CPU's instruction set, and why there is no GPU where there is none") {
  const test::Streams found = test::run_program_apart("doctor");
  CHECK(found.status == 0);
  CHECK(found.errors == "");
  CHECK(contains(found.output, "instruction set "));
  CHECK(contains(found.output, "cuda "));
  const json rows = json::parse(test::run_program_apart("doctor --json -").output).at("results");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].at("device") == "cpu");
  CHECK(rows[0].at("count") == 1);
  CHECK(rows[1].at("device") == "cuda");
  CHECK((rows[1].at("count") > 0) == (rows[1].at("why_not") == ""));
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
