// All-reduces of freshly written buffers, one case per input line.
#include <brigade/core/error.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/lab/bench/follow/follow.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/rank_job.h>

#include <algorithm>
#include <chrono>

namespace brigade::lab::bench {
namespace {

std::vector<double> calls(dist::ProcessGroup& group, const Tensor& buffer, int64_t count) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> us;
  for (int64_t call = -1; call < count; ++call) {
    // As after a backward: the cache lines are on the core that has written them.
    kernels::fill(buffer, 1.0 + group.rank());
    group.barrier();
    const auto begin = Clock::now();
    group.all_reduce(buffer)->wait();
    if (call >= 0) us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  const Tensor sum = buffer.narrow(0, 0, 1).to(kFloat64);
  const double expected = group.size() * (group.size() + 1) / 2.0;
  if (sum.item() != expected) throw DistError("all-reduce: expected {}, got {}", expected, sum.item());
  return us;
}

// Reports an unknown dtype as ValueError: a wrong line is wrong usage.
DType dtype_of(const std::string& word) {
  try {
    return dtype_from_name(word);
  } catch (const Error& error) {
    throw ValueError(error.what());
  }
}

std::string follow_allreduce_job(const dist::ProcessGroupPtr& group, const std::string&) {
  pin_rank(local_rank(*group));
  follow(*group, [&](const std::vector<std::string>& words) {
    if (words.size() != 4) {
      throw ValueError("bench follow allreduce: expected DTYPE BYTES WAY CALLS, got {} words", words.size());
    }
    const DType dtype = dtype_of(words[0]);
    const int64_t bytes = count_of(words[1], "bench follow allreduce: BYTES", int64_t{4} << 30);
    const int64_t count = std::max<int64_t>(bytes / static_cast<int64_t>(itemsize(dtype)), 1);
    const int64_t times = count_of(words[3], "bench follow allreduce: CALLS", 1'000'000);
    if (words[2] != "in_place" && words[2] != "staged")
      throw ValueError("bench follow allreduce: WAY is in_place or staged, got '{}'", words[2]);
    return calls(*group, words[2] == "in_place" ? group->allocate(count, dtype) : empty({count}, dtype), times);
  });
  return {};
}

const AddRankJob add_allreduce(kFollowAllreduceJob, &follow_allreduce_job);

}  // namespace
}  // namespace brigade::lab::bench
