#include "ddp_cases.h"
#include "processes.h"

#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/nn/linear.h>

#include <doctest/doctest.h>

using namespace brigade;

TEST_CASE("DDP between threads: gradients and steps equal those of one process on the whole batch") {
  for (const std::string& backend : std::vector<std::string>{"threads"}) {
    for (const int ranks : {1, 2, 3}) {
      CAPTURE(backend);
      CAPTURE(ranks);
      test::check_same_as_one_process(backend, ranks);
    }
  }
}

TEST_CASE(
    "DDP between threads: a parameter unused on rank 1 only: every rank raises the same error, and the next step "
    "works") {
  for (const std::string& backend : std::vector<std::string>{"threads"}) {
    for (const int ranks : {2, 3, 4}) {
      CAPTURE(backend);
      CAPTURE(ranks);
      test::check_unused_on_one_rank(backend, ranks, 25);
      test::check_unused_on_one_rank(backend, ranks, 1e-4);
    }
  }
}

TEST_CASE("DDP between threads: a rank whose loss reaches no parameter at all") {
  for (const std::string& backend : std::vector<std::string>{"threads"}) {
    for (const int ranks : {2, 3}) {
      CAPTURE(backend);
      CAPTURE(ranks);
      test::check_loss_reaches_nothing(backend, ranks);
    }
  }
}

TEST_CASE("DDP between threads: an exception in one rank's backward reaches its peers, which name the rank") {
  for (const std::string& backend : std::vector<std::string>{"threads"}) {
    for (const int ranks : {2, 3}) {
      CAPTURE(backend);
      CAPTURE(ranks);
      test::check_failure_in_backward(backend, ranks);
    }
  }
}

TEST_CASE(
    "DDP between threads: find_unused_parameters: averaged with zeros, left alone where no rank used it, no more "
    "collectives") {
  for (const std::string& backend : std::vector<std::string>{"threads"}) {
    for (const int ranks : {2, 3}) {
      CAPTURE(backend);
      CAPTURE(ranks);
      test::check_find_unused(backend, ranks);
    }
  }
}

TEST_CASE("DDP between threads: no_sync accumulates, with the flags of all micro-batches joined") {
  for (const std::string& backend : std::vector<std::string>{"threads"}) {
    for (const int ranks : {2, 3}) {
      CAPTURE(backend);
      CAPTURE(ranks);
      test::check_no_sync(backend, ranks);
    }
  }
}

TEST_CASE("DDP between threads: ranks that disagree on the model are told the first difference and who holds what") {
  for (const std::string& backend : std::vector<std::string>{"threads"}) {
    for (const int ranks : {2, 3}) {
      CAPTURE(backend);
      CAPTURE(ranks);
      test::check_models_differ(backend, ranks);
    }
  }
}

TEST_CASE("a module that is wrapped twice at a time is refused, and may be wrapped again afterwards") {
  const auto group = dist::make_thread_groups(1).front();
  nn::Linear net(2, 2);
  {
    dist::DistributedDataParallel first(net, group);
    CHECK_THROWS_WITH_AS(dist::DistributedDataParallel(net, group),
                         doctest::Contains("the gradient of `weight` is managed by another wrapper already"),
                         ValueError);
  }
  CHECK_NOTHROW(dist::DistributedDataParallel(net, group));
  net->requires_grad_(false);
  // Nothing to reduce: allowed, with a note.
  const dist::DistributedDataParallel frozen(net, group);
  REQUIRE(frozen.advisories().size() == 1);
  CHECK(frozen.advisories()[0].kind == "nothing_to_reduce");
  CHECK(frozen.advisories()[0].severity == dist::Severity::Note);
}
