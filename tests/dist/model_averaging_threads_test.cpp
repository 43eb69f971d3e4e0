#include "model_averaging_cases.h"
#include "on_ranks.h"

using namespace brigade;

TEST_CASE("between threads: average_parameters: the mean over the ranks, one all-reduce per dtype") {
  test::on_threads(&test::check_average);
}

TEST_CASE("between threads: PeriodicModelAverager: local SGD equals the same computed in one process") {
  test::on_threads(&test::check_local_sgd);
}
