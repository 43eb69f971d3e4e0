// ProcessGroup::allocate() refuses element counts whose size in bytes overflows.
#include <brigade/dist/groups/threads/run_threads.h>

#include <doctest/doctest.h>

#include <limits>

namespace brigade::test::allocate_threads_test {

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

}  // namespace brigade::test::allocate_threads_test
