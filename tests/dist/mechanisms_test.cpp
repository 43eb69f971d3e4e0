#include "mechanisms_cases.h"
#include "on_ranks.h"

using namespace brigade;

TEST_CASE("between processes: every option gives the parameters of one process on the whole batch") {
  test::on_processes(&test::check_options_equal_one_process);
}

TEST_CASE("between processes: accumulation under no_sync and several backwards add up") {
  test::on_processes(&test::check_accumulation);
}

TEST_CASE("between processes: communication hooks average, lossy ones within their bounds") {
  test::on_processes(&test::check_hooks);
}

TEST_CASE("between processes: local SGD with model averaging") {
  test::on_processes(&test::check_local_sgd_and_averaging);
}

TEST_CASE("between processes: join: ranks with different numbers of batches") { test::on_processes(&test::check_join); }

TEST_CASE("between processes: two wrappers in one loss; a GAN under one wrapper") {
  test::on_processes(&test::check_several_wrappers);
}

TEST_CASE("between processes: shared, frozen and mixed-dtype parameters") {
  test::on_processes(&test::check_unusual_models);
}

TEST_CASE("between processes: embeddings, whose gradients are dense") { test::on_processes(&test::check_embedding); }

TEST_CASE("between processes: optimizers that step in backward") {
  test::on_processes(&test::check_optimizer_in_backward);
}

TEST_CASE("between processes: verify_consistency finds the first tensor, element and rank") {
  test::on_processes(&test::check_verify_consistency);
}

TEST_CASE("between processes: logging data and the timeline") { test::on_processes(&test::check_logging_data); }

TEST_CASE("between processes: a cut inside a checkpoint, which only backward can see") {
  test::on_processes(&test::check_cut_inside_checkpoint);
}

TEST_CASE("between processes: eight ranks on fewer cores") { test::check_accumulation("shm", 8); }
