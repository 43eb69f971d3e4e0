// Training steps of the networks of `brigade bench ddp`, one case per input line.
#include <brigade/core/device_runtime.h>
#include <brigade/core/error.h>
#include <brigade/lab/bench/ddp/replica.h>
#include <brigade/lab/bench/follow/follow.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/rank_job.h>

#include <map>
#include <memory>

namespace brigade::lab::bench {
namespace {

std::string follow_ddp_job(const dist::ProcessGroupPtr& group, const std::string& device_text) {
  const Device device = choose_device(device_text, local_rank(*group));
  set_current_device(device);
  const bool on_cpu = device.type == DeviceType::CPU;
  // Threads that serve a GPU are not pinned.
  if (on_cpu) pin_rank(local_rank(*group));
  std::map<std::string, std::unique_ptr<Replica>> replicas;
  follow(*group, [&](const std::vector<std::string>& words) {
    if (words.size() != 3) throw ValueError("bench follow ddp: expected MODEL MODE STEPS, got {} words", words.size());
    const Workload& workload = find_workload(words[0]);
    const Mode mode = find_mode(words[1]);
    const int64_t steps = count_of(words[2], "bench follow ddp: STEPS", 1'000'000);
    std::unique_ptr<Replica>& replica = replicas[words[0] + " " + words[1]];
    if (!replica) replica = std::make_unique<Replica>(workload, mode, group, device);
    std::vector<double> us;
    group->barrier();
    replica->step();
    if (!on_cpu) return std::vector<double>{1000 * replica->mean_ms_of(steps)};
    for (int64_t step = 0; step < steps; ++step)
      us.push_back(1000 * replica->step().step_ms);
    return us;
  });
  return {};
}

const AddRankJob add_ddp(kFollowDdpJob, &follow_ddp_job);

}  // namespace
}  // namespace brigade::lab::bench
