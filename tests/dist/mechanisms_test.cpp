#include "mechanisms_cases.h"
#include "processes.h"

#include <doctest/doctest.h>

using namespace brigade;

namespace {

// Shared memory on 2 and 4 ranks, Gloo on 3.
void on_processes(void (*check)(const std::string&, int)) {
  for (const std::string& backend : test::backends()) {
    if (backend == "threads") continue;  // mechanisms_threads_test.cpp
    for (const int ranks : backend == "shm" ? std::vector<int>{2, 4} : std::vector<int>{3}) {
      CAPTURE(backend);
      CAPTURE(ranks);
      check(backend, ranks);
    }
  }
}

}  // namespace

TEST_CASE("between processes: every option gives the parameters of one process on the whole batch") {
  on_processes(&test::check_options_equal_one_process);
}

TEST_CASE("between processes: accumulation under no_sync and several backwards add up") {
  on_processes(&test::check_accumulation);
}

TEST_CASE("between processes: communication hooks average, lossy ones within their bounds") {
  on_processes(&test::check_hooks);
}

TEST_CASE("between processes: local SGD with model averaging") { on_processes(&test::check_local_sgd_and_averaging); }

TEST_CASE("between processes: join: ranks with different numbers of batches") { on_processes(&test::check_join); }

TEST_CASE("between processes: two wrappers in one loss; a GAN under one wrapper") {
  on_processes(&test::check_several_wrappers);
}

TEST_CASE("between processes: shared, frozen and mixed-dtype parameters") { on_processes(&test::check_unusual_models); }

TEST_CASE("between processes: embeddings, whose gradients are dense") { on_processes(&test::check_embedding); }

TEST_CASE("between processes: optimizers that step in backward") { on_processes(&test::check_optimizer_in_backward); }

TEST_CASE("between processes: verify_consistency finds the first tensor, element and rank") {
  on_processes(&test::check_verify_consistency);
}

TEST_CASE("between processes: logging data and the timeline") { on_processes(&test::check_logging_data); }

TEST_CASE("between processes: a cut inside a checkpoint, which only backward can see") {
  on_processes(&test::check_cut_inside_checkpoint);
}

TEST_CASE("between processes: eight ranks on fewer cores") { test::check_accumulation("shm", 8); }
