// The times at which a collective's phases ended (dist::WorkTimes), which every backend has to report.
#include "rank_case.h"

#include <brigade/core/clock.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace brigade::test::work_times_cases {
struct Seen {
  int64_t before = 0;  // time before it was posted
  dist::WorkTimes times;
  int64_t after = 0;  // time after the wait for it
};

// What every rank observed of one collective.
std::vector<Seen> gather(dist::ProcessGroup& group, const Seen& own) {
  std::vector<Seen> all;
  for (const std::string& text :
       group.all_gather_text(fmt::format("{} {} {} {}", own.before, own.times.arrived, own.times.reduced, own.after))) {
    std::istringstream in(text);
    Seen seen;
    in >> seen.before >> seen.times.arrived >> seen.times.reduced >> seen.after;
    all.push_back(seen);
  }
  return all;
}

// "", or what is wrong.
std::string check(const std::vector<Seen>& ranks, bool knows_arrival, bool shares_memory) {
  int64_t last = 0;
  for (const Seen& seen : ranks)
    last = std::max(last, seen.before);
  for (const Seen& seen : ranks) {
    const dist::WorkTimes& times = seen.times;
    if (times.reduced < last) return "reduced before the last rank had posted";
    if (times.reduced > seen.after) return "reduced after the wait for it";
    if (!knows_arrival) {
      if (times.arrived != 0) return "an arrival that nobody can know";
      continue;
    }
    if (times.arrived < last) return "all arrived before the last rank had posted";
    if (times.arrived > times.reduced) return "reduced before all had arrived";
    if (shares_memory && (times.arrived != ranks[0].times.arrived || times.reduced != ranks[0].times.reduced))
      return "ranks that share memory disagree";
  }
  return "";
}

// Posts more collectives than fit into the ring at once. Ranks of one machine share a clock: no rank has all peers
// before the last one has posted.
void check_work_times(const std::string& backend, int ranks) {
  const bool shares_memory = backend == "threads" || backend == "shm" || backend == "nccl-on-host";
  const bool knows_arrival = shares_memory || (backend == "gloo" && ranks <= 2);  // Gloo knows it of a single peer only
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    constexpr int kPosted = 70;
    std::vector<Tensor> tensors;
    std::vector<dist::WorkPtr> works;
    std::vector<Seen> own(kPosted);
    for (Seen& seen : own) {
      tensors.push_back(group->allocate(1000, kFloat32));
      kernels::fill(tensors.back(), 1.0);
      seen.before = now_ns();
      works.push_back(group->all_reduce(tensors.back()));
    }
    for (size_t i = 0; i < own.size(); ++i) {
      works[i]->wait();
      own[i].after = now_ns();
      own[i].times = works[i]->times();
    }
    for (size_t i = 0; i < own.size(); ++i) {
      const std::string wrong = check(gather(*group, own[i]), knows_arrival, shares_memory);
      if (!wrong.empty()) return fmt::format("collective {}: {}", i, wrong);
    }
    return "";
  });
}
const AddRankCase add_work_times(
    "a collective tells when all ranks had arrived and when it was reduced, or that it cannot", &check_work_times,
    {.threads = {1, 2, 4}, .shm = {1, 2, 3}, .others = {1, 2, 3, 4}});

}  // namespace brigade::test::work_times_cases
