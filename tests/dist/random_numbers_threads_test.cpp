// The random numbers of ranks that are threads.
#include <brigade/autograd/ops/dropout.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <vector>

namespace brigade::test::random_numbers_threads_test {

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

}  // namespace brigade::test::random_numbers_threads_test
