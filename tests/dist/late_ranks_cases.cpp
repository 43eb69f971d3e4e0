// What each rank reports when one comes too late, leaves early, or fails in a communication hook, on every transport.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/core/factory.h>

#include <stdexcept>
#include <thread>

namespace brigade::test::late_ranks_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

using namespace std::chrono_literals;

// The last rank comes when the others have just given up.
void check_late(const std::string& backend, int ranks) {
  for (const bool monitored : {false, true}) {
    CAPTURE(monitored);
    const SharedCount gave_up;
    expect_well(backend, ranks, [&, monitored](const dist::ProcessGroupPtr& group) -> std::string {
      const Tensor x = group->allocate(4, kFloat32);
      group->all_reduce(x)->wait();
      const int last = group->size() - 1;
      const auto meet = [&] {
        if (monitored) {
          group->monitored_barrier(1000ms);
        } else {
          group->all_reduce(x, {.description = "the late one"})->wait(1000ms);
        }
      };
      if (group->rank() == last) {
        if (!gave_up.wait_for(last)) return "nobody gave up";
        // Each transport has its own wording for whether a peer gave up or this rank itself timed out.
        return expect_error<DistError>(meet, {"ank " + std::to_string(last), "\ndo:  "});
      }
      const SharedCount::AddAtEnd adds{gave_up};
      return expect_error<TimeoutError>(meet, {"ank " + std::to_string(last), "\ndo:  "});
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

// Rank 1 calls a collective in its backward, finds that rank 0 is in another one, and does something else by the time
// rank 0 looks.
void check_late_look(const std::string& backend, int ranks) {
  const SharedCount posted;
  const SharedCount found;
  const SharedCount looked;
  const std::vector<Rank> told = run_ranks(backend, ranks, [&](const dist::ProcessGroupPtr& group) -> std::string {
    Net net;
    Ddp ddp(net, group, {.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6});
    const Tensor output = ddp(batch_of(group->rank(), 0));
    if (group->rank() == 1) {
      output.register_hook([&](const Tensor& gradient) {
        if (!posted.wait_for(1)) throw std::runtime_error("rank 0 posted nothing");
        group->all_reduce(empty({1}), {.description = "a metric"})->wait();
        return gradient;
      });
    } else {
      // The buckets of the later layers have been launched.
      net->a->weight.register_hook([&](const Tensor& gradient) {
        posted.add();
        return found.wait_for(1) ? gradient : throw std::runtime_error("rank 1 found nothing");
      });
    }
    const SharedCount::AddAtEnd adds{looked};
    try {
      loss_of(output).backward();
    } catch (const dist::CollectiveError& error) {
      const dist::Activity afterwards(*group, "writing a report");
      found.add();
      return group->rank() == 1 && !looked.wait_for(1) ? "rank 0 waits on" : std::string(error.what());
    }
    return "nothing was found";
  });
  for (const Rank& rank : told) {
    CHECK_MESSAGE(rank.result.find("rank 1 calls all_reduce \"a metric\"") != std::string::npos, rank.text);
    CHECK_MESSAGE(rank.result.find("in its backward, to which that of rank 0 does not come") != std::string::npos,
                  rank.result);
  }
  CHECK(told[0].result == told[1].result);
}
const AddRankCase add_late_look("ranks that meet in different collectives say the same, whichever looks first",
                                &check_late_look, {.threads = {2}, .shm = {2}, .others = {2}});

// The hook of the last rank throws, at once or in its continuation after the all-reduce, and the rank stays alive.
void check_hook(const std::string& backend, int ranks, bool afterwards) {
  const SharedCount told;
  const Body train = [&told, afterwards](const dist::ProcessGroupPtr& group) -> std::string {
    const int last = group->size() - 1;
    Net net;
    Ddp ddp(net, group);
    ddp.register_comm_hook(dist::make_comm_hook(
        "unlucky", [last, afterwards](dist::ProcessGroup& ranks_of_it, const dist::GradBucket& bucket) {
          const auto try_luck = [mine = ranks_of_it.rank() == last] {
            if (mine) throw std::runtime_error("out of luck");
          };
          if (!afterwards) try_luck();
          const dist::WorkPtr work = ranks_of_it.all_reduce(bucket.buffer(), {.op = dist::ReduceOp::Avg});
          return afterwards ? dist::then(work, try_luck) : work;
        }));
    // If the hook throws after its all-reduce, the peers may complete the first backward.
    const auto backward = [&] {
      for (int i = 0; i < 2; ++i)
        loss_of(ddp(batch_of(0, 1))).backward();
    };
    if (group->rank() == last) {
      const std::string wrong = expect_error<std::runtime_error>(backward, {"out of luck"});
      // Stays alive. Gloo was seen to notice and report broken connections only at its time-out.
      return told.wait_for(last) ? wrong : "the others were not told while this rank lived; " + wrong;
    }
    const SharedCount::AddAtEnd adds{told};
    return expect_error<PeerError>(
        backward, {"rank " + std::to_string(last), "the communication hook unlucky threw", "out of luck"});
  };
  expect_all_well(run_ranks(backend, ranks, train, backend == "threads" || backend == "shm" ? 60s : 5s));
}
const AddRankCase add_hook("a communication hook that throws on one rank is reported to the others",
                           [](const std::string& backend, int ranks) { check_hook(backend, ranks, false); },
                           {.threads = {2, 3}, .shm = {2, 3}, .others = {3}});
const AddRankCase add_after("what a communication hook throws after its all-reduce is reported to the others",
                            [](const std::string& backend, int ranks) { check_hook(backend, ranks, true); },
                            {.threads = {2, 3}, .shm = {2, 3}, .others = {3}});

}  // namespace brigade::test::late_ranks_cases
