// Training steps of the networks of `brigade bench ddp`, by line.
#include <brigade/core/error.h>
#include <brigade/lab/bench/ddp/replica.h>
#include <brigade/lab/bench/follow/follow.h>
#include <brigade/lab/bench/pinning.h>
#include <brigade/lab/rank_job.h>

#include <map>
#include <memory>

namespace brigade::lab::bench {

namespace {

std::string follow_ddp_job(const dist::ProcessGroupPtr& group, const std::string&) {
  pin_rank(local_rank(*group));
  std::map<std::string, std::unique_ptr<Replica>> replicas;
  follow(*group, [&](const std::vector<std::string>& words) {
    if (words.size() != 3) throw ValueError("bench follow ddp: expected MODEL MODE STEPS, got {} words", words.size());
    const Workload& workload = find_workload(words[0]);
    const Mode mode = find_mode(words[1]);
    const int64_t steps = count_of(words[2], "bench follow ddp: STEPS", 1'000'000);
    std::unique_ptr<Replica>& replica = replicas[words[0] + " " + words[1]];
    if (!replica) replica = std::make_unique<Replica>(workload, mode, group);
    std::vector<double> us;
    group->barrier();
    for (int64_t step = -1; step < steps; ++step) {
      const double ms = replica->step().step_ms;
      if (step >= 0) us.push_back(1000 * ms);
    }
    return us;
  });
  return {};
}

const AddRankJob add_ddp(kFollowDdpJob, &follow_ddp_job);

}  // namespace

}  // namespace brigade::lab::bench
