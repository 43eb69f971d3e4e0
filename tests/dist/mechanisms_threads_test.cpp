#include "mechanisms_cases.h"
#include "processes.h"

#include <doctest/doctest.h>

using namespace brigade;

namespace {

void on_threads(void (*check)(const std::string&, int)) {
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    check("threads", ranks);
  }
}

}  // namespace

TEST_CASE("between threads: every option gives the parameters of one process on the whole batch") {
  on_threads(&test::check_options_equal_one_process);
}

TEST_CASE("between threads: accumulation under no_sync and several backwards add up") {
  on_threads(&test::check_accumulation);
}

TEST_CASE("between threads: communication hooks average, lossy ones within their bounds") {
  on_threads(&test::check_hooks);
}

TEST_CASE("between threads: local SGD with model averaging") { on_threads(&test::check_local_sgd_and_averaging); }

TEST_CASE("between threads: join: ranks with different numbers of batches") { on_threads(&test::check_join); }

TEST_CASE("between threads: two wrappers in one loss; a GAN under one wrapper") {
  on_threads(&test::check_several_wrappers);
}

TEST_CASE("between threads: shared, frozen and mixed-dtype parameters") { on_threads(&test::check_unusual_models); }

TEST_CASE("between threads: embeddings, whose gradients are dense") { on_threads(&test::check_embedding); }

TEST_CASE("between threads: optimizers that step in backward") { on_threads(&test::check_optimizer_in_backward); }

TEST_CASE("between threads: verify_consistency finds the first tensor, element and rank") {
  on_threads(&test::check_verify_consistency);
}

TEST_CASE("between threads: logging data and the timeline") { on_threads(&test::check_logging_data); }

TEST_CASE("between threads: a cut inside a checkpoint, which only backward can see") {
  on_threads(&test::check_cut_inside_checkpoint);
}
