#include "mechanisms_cases.h"
#include "on_ranks.h"

using namespace brigade;

TEST_CASE("between threads: every option gives the parameters of one process on the whole batch") {
  test::on_threads(&test::check_options_equal_one_process);
}

TEST_CASE("between threads: accumulation under no_sync and several backwards add up") {
  test::on_threads(&test::check_accumulation);
}

TEST_CASE("between threads: communication hooks average, lossy ones within their bounds") {
  test::on_threads(&test::check_hooks);
}

TEST_CASE("between threads: local SGD with model averaging") { test::on_threads(&test::check_local_sgd_and_averaging); }

TEST_CASE("between threads: join: ranks with different numbers of batches") { test::on_threads(&test::check_join); }

TEST_CASE("between threads: two wrappers in one loss; a GAN under one wrapper") {
  test::on_threads(&test::check_several_wrappers);
}

TEST_CASE("between threads: shared, frozen and mixed-dtype parameters") {
  test::on_threads(&test::check_unusual_models);
}

TEST_CASE("between threads: embeddings, whose gradients are dense") { test::on_threads(&test::check_embedding); }

TEST_CASE("between threads: optimizers that step in backward") { test::on_threads(&test::check_optimizer_in_backward); }

TEST_CASE("between threads: verify_consistency finds the first tensor, element and rank") {
  test::on_threads(&test::check_verify_consistency);
}

TEST_CASE("between threads: logging data and the timeline") { test::on_threads(&test::check_logging_data); }

TEST_CASE("between threads: a cut inside a checkpoint, which only backward can see") {
  test::on_threads(&test::check_cut_inside_checkpoint);
}
