// Ranks that are threads: their memory, random numbers and wrappers.
#include <brigade/autograd/ops/activation.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/linear.h>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace brigade::test::thread_ranks_test {

TEST_CASE("a group does not allocate what it cannot count") {
  dist::run_threads(1, [](dist::ProcessGroupPtr group) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    CHECK_THROWS_WITH_AS(group->allocate((int64_t{1} << 62) + 4, kFloat32),
                         doctest::Contains("4611686018427387908 * 4 does not fit into 64 bits"), ShapeError);
    CHECK_THROWS_AS(group->allocate(-1, kFloat32), ShapeError);
    CHECK_THROWS_AS(group->allocate(kMost, kUInt8), OutOfMemoryError);
    CHECK_THROWS_AS(group->allocate(kMost, kFloat16), OutOfMemoryError);
    CHECK(group->allocate(0, kFloat64).numel() == 0);
  });
}

TEST_CASE("ranks that are threads drop different elements, the same ones in every run, unless they seed alike") {
  using Masks = std::vector<std::vector<float>>;
  const auto masks = [](bool seed_alike) {
    Masks result(3);
    dist::run_threads(3, [&](dist::ProcessGroupPtr group) {
      if (seed_alike) manual_seed(5);
      result[static_cast<size_t>(group->rank())] = dropout(ones({64}), 0.5).to_vector<float>();
    });
    return result;
  };
  const Masks once = masks(false);
  CHECK(once[0] != once[1]);
  CHECK(once[0] != once[2]);
  CHECK(once[1] != once[2]);
  CHECK(masks(false) == once);
  const Masks alike = masks(true);
  CHECK(alike[0] == alike[1]);
  CHECK(alike[0] == alike[2]);
}

TEST_CASE("a module without trainable parameters is wrapped with a note") {
  const auto group = dist::make_thread_groups(1).front();
  nn::Linear net(2, 2);
  net->requires_grad_(false);
  const dist::DistributedDataParallel frozen(net, group);
  REQUIRE(frozen.advisories().size() == 1);
  CHECK(frozen.advisories()[0].kind == "nothing_to_reduce");
  CHECK(frozen.advisories()[0].severity == dist::Severity::Note);
}

}  // namespace brigade::test::thread_ranks_test
