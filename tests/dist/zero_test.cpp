#include "on_ranks.h"
#include "zero_cases.h"

using namespace brigade;

TEST_CASE(
    "between processes: ZeRO over two groups is the plain optimizer bit for bit, and so is its consolidated state") {
  test::on_processes(&test::check_zero_equals_plain);
}

TEST_CASE("between processes: ZeRO: a consolidated state is reloaded and training goes on bit for bit") {
  test::on_processes(&test::check_zero_state_reloaded);
}

TEST_CASE(
    "between processes: ZeRO: ranks without parameters, frozen and unused parameters, a gradient on one rank alone") {
  test::on_processes(&test::check_zero_shards);
}

TEST_CASE("between processes: ZeRO: ranks that differ, options and states that do not fit are refused on every rank") {
  test::on_processes(&test::check_zero_refusals);
}

TEST_CASE("between processes: ZeRO: a state of several pieces and dtypes arrives whole") {
  for (const std::string& backend : test::backends()) {
    if (backend != "threads") test::on(backend, {2}, &test::check_zero_large_state);
  }
}
