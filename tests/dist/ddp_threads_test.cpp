#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/nn/linear.h>

#include <doctest/doctest.h>

namespace brigade::test::ddp_threads_test {

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

}  // namespace brigade::test::ddp_threads_test
