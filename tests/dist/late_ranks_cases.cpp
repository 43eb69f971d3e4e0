// Who is told what when a rank comes too late, or leaves early.
#include "rank_case.h"

#include <brigade/core/factory.h>

#include <thread>

namespace brigade::test {

namespace {

using namespace std::chrono_literals;

// The last rank comes when the others have just given up.
void check_late(const std::string& backend, int ranks) {
  for (const bool monitored : {false, true}) {
    // There the time-out of one wait() ends that wait alone: the steps have the group's.
    if (backend == "hosts" && !monitored) continue;
    CAPTURE(monitored);
    expect_well(backend, ranks, [monitored](const dist::ProcessGroupPtr& group) -> std::string {
      const Tensor x = group->allocate(4, kFloat32);
      group->all_reduce(x)->wait();
      const int last = group->size() - 1;
      const auto meet = [&] {
        if (monitored) {
          group->monitored_barrier(300ms);
        } else {
          group->all_reduce(x, {.description = "the late one"})->wait(300ms);
        }
      };
      if (group->rank() == last) {
        std::this_thread::sleep_for(600ms);
        // Whether a peer gave up or it has itself timed out the transports say in their own ways.
        return expect_error<DistError>(meet, {"waiting for rank " + std::to_string(last)});
      }
      return expect_error<TimeoutError>(meet, {"waiting for rank " + std::to_string(last)});
    });
  }
}
const AddRankCase add_late("a rank that comes soon after a time-out is named by it", &check_late,
                           {.threads = {2}, .shm = {2}, .others = {2, 3}});

// The last rank posts a collective and leaves.
std::string check_left(const dist::ProcessGroupPtr& given) {
  dist::ProcessGroupPtr group = given;
  const int last = group->size() - 1;
  const Tensor x = empty({1 << 10}, kFloat32);
  if (group->rank() == last) {
    group->all_reduce(x, {.description = "posted"});
    return "";
  }
  std::this_thread::sleep_for(500ms);
  return expect_error<PeerError>([&] { group->all_reduce(x, {.description = "posted"})->wait(); },
                                 {"rank " + std::to_string(last), "all_reduce", "posted"});
}
const AddRankCase add_left("a rank that posts and leaves is named, and the collective", &check_left,
                           {.threads = {}, .shm = {2, 3}, .others = {}});

}  // namespace

}  // namespace brigade::test
