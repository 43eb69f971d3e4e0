#include "model_averaging_cases.h"
#include "on_ranks.h"

using namespace brigade;

TEST_CASE("between processes: average_parameters: the mean over the ranks, one all-reduce per dtype") {
  test::on_processes(&test::check_average);
}

TEST_CASE("between processes: PeriodicModelAverager: local SGD equals the same computed in one process") {
  test::on_processes(&test::check_local_sgd);
}
