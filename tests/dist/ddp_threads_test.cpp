#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/nn/linear.h>

#include <doctest/doctest.h>

namespace brigade::test::ddp_threads_test {

TEST_CASE("a module without trainable parameters is wrapped with a note") {
  const auto group = dist::make_thread_groups(1).front();
  nn::Linear net(2, 2);
  net->requires_grad_(false);
  const dist::DistributedDataParallel frozen(net, group);
  REQUIRE(frozen.advisories().size() == 1);
  CHECK(frozen.advisories()[0].kind == "nothing_to_reduce");
  CHECK(frozen.advisories()[0].severity == dist::Severity::Note);
}

}  // namespace brigade::test::ddp_threads_test
