// Measurements on a trunk with two heads, of which a backward may skip one.
#include <brigade/lab/claims/claim.h>

#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/lab/faults/models.h>
#include <brigade/lab/recipes/training.h>
#include <brigade/lab/traffic.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace brigade::lab {
namespace {

using Ddp = dist::DistributedDataParallel<Heads>;

constexpr int kRanks = 2;

// A bucket for each parameter.
dist::DDPOptions small_buckets(bool find_unused) {
  return {.find_unused_parameters = find_unused, .bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6};
}

void backward(Ddp& ddp, int rank, bool uses_second) {
  RandomGenerator random(100 + static_cast<uint64_t>(rank));
  const auto [first, second] = ddp(randn({8, 4}, kFloat32, &random));
  (uses_second ? loss_of(first) + loss_of(second) : loss_of(first)).backward();
}

// Returns the evidence of rank `told`, after one backward that uses both heads: buckets are rebuilt after the first
// backward.
Evidence on_two_ranks(int told, const dist::DDPOptions& options,
                      const std::function<Evidence(Ddp& ddp, dist::ProcessGroup& group)>& look) {
  Evidence evidence;
  dist::run_threads(kRanks, [&](const dist::ProcessGroupPtr& group) {
    const dist::AdvisoryCollector quiet;
    Ddp ddp(Heads(), group, options);
    backward(ddp, group->rank(), true);
    ddp.module()->zero_grad();
    const Evidence own = look(ddp, *group);
    if (group->rank() == told) evidence = own;
  });
  return evidence;
}

Traffic sent_by_backward(Ddp& ddp, dist::ProcessGroup& group, bool uses_second) {
  const uint64_t before = latest_collective(group);
  backward(ddp, group.rank(), uses_second);
  ddp.module()->zero_grad();
  return traffic_since(group, before);
}

std::string in_words(const Traffic& sent) { return fmt::format("{} collectives, {} B", sent.collectives, sent.bytes); }

// Only rank 0 uses the second head.
void backward_with_second_on_rank_0(Ddp& ddp, dist::ProcessGroup& group) {
  backward(ddp, group.rank(), group.rank() == 0);
}

}  // namespace

Evidence bytes_with_an_unused_head() {
  return on_two_ranks(0, small_buckets(true), [](Ddp& ddp, dist::ProcessGroup& group) -> Evidence {
    const Traffic all = sent_by_backward(ddp, group, true), without = sent_by_backward(ddp, group, false);
    return {without.collectives == all.collectives && without.bytes == all.bytes,
            fmt::format("a backward without h2: {}; with it: {}", in_words(without), in_words(all))};
  });
}

Evidence bytes_with_a_frozen_head() {
  Traffic all, frozen;
  for (const bool freezes : {false, true}) {
    dist::run_threads(kRanks, [&](const dist::ProcessGroupPtr& group) {
      Heads net;
      if (freezes) net->h2->requires_grad_(false);
      Ddp ddp(net, group, small_buckets(false));
      sent_by_backward(ddp, *group, true);
      const Traffic sent = sent_by_backward(ddp, *group, true);
      if (group->rank() == 0) (freezes ? frozen : all) = sent;
    });
  }
  return {frozen.collectives < all.collectives && frozen.bytes < all.bytes,
          fmt::format("h2 frozen before wrapping: {}; trained: {}", in_words(frozen), in_words(all))};
}

Evidence names_without_gradient() {
  return on_two_ranks(1, small_buckets(true), [](Ddp& ddp, dist::ProcessGroup& group) -> Evidence {
    backward_with_second_on_rank_0(ddp, group);
    std::vector<std::string> names;
    for (const auto& [name, parameter] : ddp.module()->named_parameters())
      if (!parameter.grad().defined()) names.push_back(name);
    return {names.empty(),
            fmt::format("rank 1 has not used h2; its names without a gradient: [{}]", fmt::join(names, ", "))};
  });
}

Evidence users_of_the_head() {
  return on_two_ranks(1, small_buckets(true), [](Ddp& ddp, dist::ProcessGroup& group) -> Evidence {
    backward_with_second_on_rank_0(ddp, group);
    for (const dist::ExplainedParameter& each : ddp.explain().parameters) {
      if (each.name != "h2.weight") continue;
      const bool used = each.used.value_or(true);
      return {!used && each.users == 1, fmt::format("on rank 1, h2.weight: {} here, used by {} of {} ranks",
                                                    used ? "used" : "not used", each.users.value_or(0), kRanks)};
    }
    return {false, "explain() does not name h2.weight"};
  });
}

Evidence buckets_that_left_in_backward() {
  return on_two_ranks(0, small_buckets(false), [](Ddp& ddp, dist::ProcessGroup& group) -> Evidence {
    backward(ddp, group.rank(), true);
    const dist::RoundEvents& round = ddp.timeline().rounds().back();
    const auto left = std::ranges::count_if(
        round.buckets, [&](const dist::BucketEvents& each) { return each.launched < round.compute_ended; });
    return {left > 0 && static_cast<size_t>(left) + 1 >= round.buckets.size(),
            fmt::format("{} of {} buckets left before backward had run all its nodes", left, round.buckets.size())};
  });
}

Evidence gradients_before_step() {
  return on_two_ranks(0, small_buckets(false), [](Ddp& ddp, dist::ProcessGroup& group) -> Evidence {
    backward(ddp, group.rank(), true);
    const bool equal = same_on_all_ranks(group, gradients_of(ddp.module()->parameters()));
    return {equal, fmt::format("behind backward(), before any step, gradients are {} on the ranks",
                               equal ? "equal to the bit" : "NOT equal")};
  });
}

}  // namespace brigade::lab
