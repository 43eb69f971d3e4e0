// join: its forward, SyncBatchNorm, several joinables, joins in joins.
#include "join_net.h"
#include "rank_case.h"

#include <brigade/dist/checks/values.h>
#include <brigade/dist/ddp/join.h>
#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>

#include <algorithm>
#include <optional>

namespace brigade::test::join_cases {
using namespace joining;  // NOLINT: the file is about it

// --- The forward.

void check_early_termination(const std::string& backend, int ranks) {
  for (const bool sync : {true, false}) {
    const std::vector<Rank> outcome = run_ranks(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
      Net net = seeded_net();
      Ddp ddp(net, group, {.broadcast_buffers = false});
      dist::Join join(ddp, {.throw_on_early_termination = true});
      int forwards = 0;
      try {
        for (int s = 0; s < (group->rank() == 0 ? 2 : 4); ++s) {
          std::optional<Ddp::NoSync> local;
          if (!sync) local.emplace(ddp.no_sync());
          const Tensor output = ddp(batch_of(group->rank(), s));
          ++forwards;
          loss_of(output).backward();
        }
        join.finish();
      } catch (const DistError& error) {
        return fmt::format("{} forwards, {}", forwards, error.what());
      }
      return "no error";
    });
    CHECK(outcome[0].result.starts_with("2 forwards, Rank 0 exhausted all inputs."));
    for (size_t r = 1; r < outcome.size(); ++r)
      CHECK(outcome[r].result.starts_with("2 forwards, Detected at least one rank that exhausted inputs."));
  }
}
const AddRankCase add_early_termination("join: early termination is thrown in the forward, without buffers too",
                                        &check_early_termination, everywhere({2, 3}));

struct NormedImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  nn::BatchNorm1d norm{nullptr};
  NormedImpl() {
    a = register_module("a", nn::Linear(4, 8));
    norm = register_module("norm", nn::BatchNorm1d(8));
    b = register_module("b", nn::Linear(8, 3));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) { return b(brigade::tanh(norm(a(x)))); }
};
BRIGADE_MODULE(Normed);

Tensor sum_of_squares(const Tensor& output) { return sum(square(output - 1.0)); }

void check_sync_batch_norm(const std::string& backend, int ranks) {
  // One process on the existing batches. The loss is a sum, so that the only division is by the number of ranks.
  manual_seed(1);
  Normed one;
  optim::SGD plain(one->parameters(), {.lr = 0.01});
  for (int s = 0; s < batches_of(ranks - 1); ++s) {
    plain.zero_grad();
    std::vector<Tensor> parts;
    for (int r = 0; r < ranks; ++r) {
      if (s < batches_of(r)) parts.push_back(batch_of(r, s));
    }
    (sum_of_squares(one(cat(parts))) / static_cast<double>(ranks)).backward();
    plain.step();
  }
  const Values expected = values_of(one->parameters());
  const Values running = values_of({one->norm->running_mean, one->norm->running_var});
  for (const bool buffers : {true, false}) {
    CAPTURE(buffers);
    expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
      manual_seed(1);
      Normed net;
      dist::convert_sync_batchnorm(net, group);
      dist::DistributedDataParallel<Normed> ddp(
          net, group, {.bucket_cap_mb = 1e-4, .first_bucket_mb = 1e-4, .broadcast_buffers = buffers});
      optim::SGD optimizer(net->parameters(), {.lr = 0.01});
      dist::Join join(ddp);
      for (int s = 0; s < batches_of(group->rank()); ++s) {
        optimizer.zero_grad();
        sum_of_squares(ddp(batch_of(group->rank(), s))).backward();
        optimizer.step();
      }
      const auto statistics = [&] { return values_of({net->norm->running_mean, net->norm->running_var}); };
      const Values own = statistics();
      join.finish();
      const std::string wrong = compare(values_of(net->parameters()), expected, 1e-10);
      if (!wrong.empty()) return wrong;
      // With buffers of its own, a rank keeps the statistics that it had when its data ended.
      int most = 0;
      for (int r = 0; r < ranks; ++r)
        most = std::max(most, batches_of(r));
      if (buffers || batches_of(group->rank()) == most) return compare(statistics(), running, 1e-10);
      return compare(statistics(), own, 0);
    });
  }
}
const AddRankCase add_sync_batch_norm("join: ranks without data follow the statistics of SyncBatchNorm",
                                      &check_sync_batch_norm, everywhere({2, 3}));

// --- Several joinables.

void check_zero(const std::string& backend, int ranks) {
  Net one = seeded_net();
  optim::AdamW plain(one->parameters(), {.lr = 0.1});
  train_reference(one, plain, ranks);
  train_reference(one, plain, ranks, 40);
  const Values expected = values_of(one->parameters());
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    Net net = seeded_net();
    Ddp ddp(net, group);
    dist::ZeroRedundancyOptimizer<optim::AdamW> zero(net->parameters(), {.lr = 0.1}, group);
    for (const int offset : {0, 40}) {  // twice: the state is kept
      dist::Join join({ddp, zero});
      for (int s = 0; s < batches_of(group->rank()); ++s)
        train_step(ddp, zero, group->rank(), s + offset);
      join.finish();
    }
    return compare(values_of(net->parameters()), expected, 1e-9);
  });
}
const AddRankCase add_zero("join: ZeRO in the join steps on every rank", &check_zero, everywhere({2, 3}));

void check_two_wrappers(const std::string& backend, int ranks) {
  Net one = seeded_net(1), other = seeded_net(2);
  optim::SGD of_one(one->parameters(), {.lr = 0.1}), of_other(other->parameters(), {.lr = 0.1});
  train_reference(one, of_one, ranks);
  train_reference(other, of_other, ranks, 60);
  const Values expected_one = values_of(one->parameters()), expected_other = values_of(other->parameters());
  for (const bool nested : {false, true}) {
    CAPTURE(nested);
    expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
      Net first = seeded_net(1), second = seeded_net(2);
      Ddp ddp_of_first(first, group), ddp_of_second(second, group);
      optim::SGD step_first(first->parameters(), {.lr = 0.1}), step_second(second->parameters(), {.lr = 0.1});
      dist::Join outer(nested ? dist::Join::Joinables{ddp_of_first}
                              : dist::Join::Joinables{ddp_of_first, ddp_of_second});
      std::optional<dist::Join> inner;
      if (nested) inner.emplace(ddp_of_second);
      for (int s = 0; s < batches_of(group->rank()); ++s) {
        train_step(ddp_of_first, step_first, group->rank(), s);
        train_step(ddp_of_second, step_second, group->rank(), s + 60);
      }
      if (inner) inner->finish();
      outer.finish();
      const std::string wrong = compare(values_of(first->parameters()), expected_one);
      return wrong.empty() ? compare(values_of(second->parameters()), expected_other) : wrong;
    });
  }
}
const AddRankCase add_two_wrappers("join: two wrappers in one join, and in two that nest", &check_two_wrappers,
                                   everywhere({2, 3}));

void check_two_wrappers_in_one_loss(const std::string& backend, int ranks) {
  Net one = seeded_net(1), other = seeded_net(2);
  std::vector<Tensor> all = one->parameters();
  for (const Tensor& parameter : other->parameters())
    all.push_back(parameter);
  optim::SGD of_both(all, {.lr = 0.1});
  for (int s = 0; s < batches_of(ranks - 1); ++s) {
    of_both.zero_grad();
    for (int r = 0; r < ranks; ++r) {
      if (s >= batches_of(r)) continue;
      const Tensor loss = loss_of(one(batch_of(r, s))) + loss_of(other(batch_of(r, s + 60)));
      (loss / static_cast<double>(ranks)).backward();
    }
    of_both.step();
  }
  const Values expected_one = values_of(one->parameters()), expected_other = values_of(other->parameters());
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    Net first = seeded_net(1), second = seeded_net(2);
    Ddp ddp_of_first(first, group), ddp_of_second(second, group);
    std::vector<Tensor> mine = first->parameters();
    for (const Tensor& parameter : second->parameters())
      mine.push_back(parameter);
    optim::SGD optimizer(mine, {.lr = 0.1});
    dist::Join join({ddp_of_first, ddp_of_second});
    for (int s = 0; s < batches_of(group->rank()); ++s) {
      optimizer.zero_grad();
      const Tensor of_first = loss_of(ddp_of_first(batch_of(group->rank(), s)));
      (of_first + loss_of(ddp_of_second(batch_of(group->rank(), s + 60)))).backward();
      optimizer.step();
    }
    join.finish();
    const std::string wrong = compare(values_of(first->parameters()), expected_one);
    return wrong.empty() ? compare(values_of(second->parameters()), expected_other) : wrong;
  });
}
const AddRankCase add_two_wrappers_in_one_loss("join: two wrappers in one loss, reduced by one backward",
                                               &check_two_wrappers_in_one_loss, everywhere({2, 3}));

// A user-defined joinable: counts the batches of all ranks.
class Counter final : public dist::Joinable {
 public:
  explicit Counter(dist::ProcessGroupPtr group) : group_(std::move(group)) {}
  void count(int64_t own) {
    dist::Join::notify_join_context(*this);
    add(own);
  }
  std::unique_ptr<dist::JoinHook> join_hook(const dist::JoinOptions&) override { return std::make_unique<Hook>(*this); }
  dist::ProcessGroup& join_process_group() const noexcept override { return *group_; }

  int64_t total = 0;  // the same on all ranks
  int shadowed = 0;
  std::vector<bool> last;

 private:
  struct Hook final : dist::JoinHook {
    explicit Hook(Counter& counter) : counter(counter) {}
    void main_hook() override {
      ++counter.shadowed;
      counter.add(0);
    }
    void post_hook(bool is_last_joiner) override { counter.last.push_back(is_last_joiner); }
    Counter& counter;
  };
  void add(int64_t own) {
    const Tensor word = group_->allocate(1, kInt64);
    *word.data_ptr<int64_t>() = own;
    group_->all_reduce(word, {.op = dist::ReduceOp::Sum})->wait();
    total += *word.data_ptr<int64_t>();
  }
  dist::ProcessGroupPtr group_;
};

std::string check_own_joinable(const dist::ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  Counter counter(group);
  Net net = seeded_net();
  Ddp ddp(net, group);
  dist::Join join({counter, ddp});
  for (int s = 0; s < batches_of(group->rank()); ++s) {
    if (s % 2 == 0) counter.count(10);  // not in every iteration
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    net->zero_grad();
  }
  join.finish();
  int64_t expected = 0;
  for (int r = 0; r <= last; ++r)
    expected += 10 * ((batches_of(r) + 1) / 2);
  if (counter.total != expected) return fmt::format("counted {}, expected {}", counter.total, expected);
  const int missed = (batches_of(last) + 1) / 2 - (batches_of(group->rank()) + 1) / 2;
  if (counter.shadowed != missed) return fmt::format("shadowed {} times, expected {}", counter.shadowed, missed);
  if (counter.last != std::vector<bool>{group->rank() == last}) return "is_last_joiner is wrong";
  return "";
}
const AddRankCase add_own_joinable("join: a user's own joinable, beside a wrapper", &check_own_joinable,
                                   everywhere({2, 3}));

// --- What is refused, and what is off.

std::string check_late_inner_join(const dist::ProcessGroupPtr& group) {
  Counter outer(group), inner(group);
  dist::Join join(outer);
  const auto run = [&] {
    for (int s = 0; s < batches_of(group->rank()); ++s) {
      outer.count(1);
      dist::Join inside(inner);
      inner.count(1);
      inside.finish();
    }
    join.finish();
  };
  return expect_error<DistError>(run, {"join: rank 0 is inside 1 joins, rank 1 inside 2", "open one Join over all"});
}
const AddRankCase add_late_inner_join("join: one that opens inside one that a rank has finished is an error on all",
                                      &check_late_inner_join, everywhere({2}));

std::string check_refused(const dist::ProcessGroupPtr& group) {
  Counter counter(group), other(group);
  std::string wrong = expect_error<ValueError>([] { const dist::Join join(dist::Join::Joinables{}); },
                                               {"requires at least one joinable"});
  if (!wrong.empty()) return wrong;
  dist::Join join(counter);
  wrong = expect_error<DistError>(
      [&] {
        const dist::Join again({other, counter});
      },
      {"joinable 1 is inside another join already"});
  if (!wrong.empty()) return wrong;
  std::optional<dist::Join> inside;
  inside.emplace(other);
  wrong = expect_error<DistError>([&] { join.finish(); }, {"is open inside this one; finish it first"});
  if (!wrong.empty()) return wrong;
  inside->finish();
  join.finish();
  // Both joinables are free again.
  dist::Join again({other, counter});
  again.finish();
  return counter.last == std::vector<bool>{true, true} ? "" : "post_hook is called at each end";
}
const AddRankCase add_refused("join: joinables that are in a join already, and the wrong order of ends", &check_refused,
                              everywhere({2}));

std::string check_not_enabled(const dist::ProcessGroupPtr& group) {
  Counter counter(group);
  Net net = seeded_net();
  Ddp ddp(net, group, {.verify_every = 1});
  optim::Adam optimizer(net->parameters(), {.lr = 0.1});
  dist::Join join({ddp, counter}, {.enable = false});
  // On one rank only: no peer would answer.
  if (group->rank() == 0 && dist::Join::notify_join_context(counter) != -1)
    return "a join that is not enabled announces";
  train_step(ddp, optimizer, group->rank(), 0);
  // Steps are checked as outside of a join.
  optimizer.options().lr = 0.1 * (1 + group->rank());
  const std::string wrong = expect_error<dist::ConsistencyError>([&] { train_step(ddp, optimizer, group->rank(), 1); },
                                                                 {"lr of group 0 differs"});
  if (!wrong.empty()) return wrong;
  if (group->rank() == 0) join.finish();
  return counter.last.empty() ? "" : "finish() of a join that is not enabled calls hooks";
}
const AddRankCase add_not_enabled("join: enable = false does nothing", &check_not_enabled, everywhere({2}));

}  // namespace brigade::test::join_cases
