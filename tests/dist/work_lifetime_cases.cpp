// A Work may outlive its process group.
#include "rank_case.h"

#include <brigade/core/factory.h>
#include <brigade/kernels/factory.h>

#include <fmt/format.h>

#include <thread>

namespace brigade::test::work_lifetime_cases {
void check_complete(const std::string& backend, int ranks) {
  expect_all_well(run_ranks(backend, ranks, [](dist::ProcessGroupPtr group) -> std::string {
    const int size = group->size();
    const Tensor x = full({100'000}, group->rank() + 1, kFloat64);
    const dist::WorkPtr work = group->all_reduce(x);
    while (!work->is_completed())
      std::this_thread::yield();
    group->barrier();  // no rank leaves before all have the result
    group.reset();
    work->wait();
    work->wait(std::chrono::milliseconds(1));
    const double expected = size * (size + 1) / 2.0;
    const double found = x.to_vector<double>().back();
    return work->is_completed() && found == expected ? "" : fmt::format("{} instead of {}", found, expected);
  }));
}
const AddRankCase add_complete("a complete Work outlives its group", &check_complete, everywhere({1, 2, 3}));

void check_not_complete(const std::string& backend, int ranks) {
  expect_all_well(run_ranks(
      backend, ranks,
      [](dist::ProcessGroupPtr group) -> std::string {
        group->barrier();
        const Tensor x = ones({100'000}, kFloat64);
        dist::WorkPtr work;
        if (group->rank() == 0) work = group->all_reduce(x);
        group.reset();
        if (!work) return "";
        for (int i = 0; i < 2; ++i) {
          try {
            work->wait();
            return "waited for a rank that never came";
          } catch (const DistError&) {
          }
        }
        return work->is_completed() ? "" : "an error is not complete";
      },
      std::chrono::milliseconds(2000)));
}
const AddRankCase add_not_complete("a Work that was not complete when its group was destroyed ends with an error",
                                   &check_not_complete, everywhere({2, 3}));

}  // namespace brigade::test::work_lifetime_cases
