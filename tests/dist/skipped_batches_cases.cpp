// A forward that throws on one rank, which catches the error and goes on: reported where the ranks then average the
// gradients of different batches, and not where they skip together or the batch runs again.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

namespace brigade::test::skipped_batches_cases {

using namespace mechanisms;  // NOLINT: loss_of and batch_of

struct FragileImpl : nn::Module {
  nn::Linear layer{nullptr};
  bool fails = false;
  FragileImpl() {
    layer = register_module("layer", nn::Linear(4, 3));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) {
    if (std::exchange(fails, false)) throw std::runtime_error("no memory for the activations");
    return layer(x);
  }
};
BRIGADE_MODULE(Fragile);

enum class Then { Skips, SkipsTogether, RunsAgain, RunsHalfAgain, GoesOnAccumulating };

// Four steps; in the second one the forward of rank 0 throws. Returns the warnings.
std::vector<dist::Verdict> train(const dist::ProcessGroupPtr& group, Then then, SourceLocation& forward_at) {
  manual_seed(1);
  Fragile net;
  dist::DistributedDataParallel<Fragile> ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  // A step of something else, in each iteration, is no step of the wrapper.
  const Tensor other = zeros({1}).requires_grad_();
  other.set_grad(ones({1}));
  optim::SGD of_other({other}, {.lr = 0.1});
  const int micro_batches = then == Then::GoesOnAccumulating ? 2 : 1;
  const int steps = then == Then::Skips && group->rank() == 0 ? 5 : 4;  // all end with the same number of backwards
  for (int step = 0; step < steps; ++step) {
    for (int micro = 0; micro < micro_batches; ++micro) {
      std::optional<dist::DistributedDataParallelBase::NoSync> local;
      if (micro + 1 < micro_batches) local.emplace(ddp.no_sync());
      const Tensor x = batch_of(group->rank(), 10 * step + micro);
      net->fails = step == 1 && micro == 0 && group->rank() == 0;
      Tensor out;
      forward_at = SourceLocation::current();
      const auto forward = [&](const Tensor& batch) { out = ddp(batch, forward_at); };
      try {
        forward(x);
      } catch (const std::runtime_error&) {
        if (then == Then::RunsAgain) {
          forward(x);
          static_cast<void>(ddp(x));  // and is looked at on this rank alone
        }
        if (then == Then::RunsHalfAgain) forward(x.narrow(0, 0, x.size(0) / 2));
      }
      if (then == Then::SkipsTogether) {
        const Tensor failed = full({1}, out.defined() ? 0 : 1);
        group->all_reduce(failed)->wait();
        if (failed.item() > 0) out = Tensor();
      }
      if (out.defined()) loss_of(out).backward();
    }
    of_other.step();
    if (net->layer->weight.grad().defined()) {
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  return ddp.advisories();
}

std::string check_skipped(const dist::ProcessGroupPtr& group) {
  for (const Then then :
       {Then::Skips, Then::SkipsTogether, Then::RunsAgain, Then::RunsHalfAgain, Then::GoesOnAccumulating}) {
    SourceLocation forward_at;
    const std::vector<dist::Verdict> found = train(group, then, forward_at);
    const auto skipped = std::ranges::find(found, "batch_skipped", &dist::Verdict::kind);
    if ((skipped != found.end()) != (then == Then::Skips))
      return fmt::format("case {}: {}", static_cast<int>(then), skipped != found.end() ? skipped->message : "nothing");
    if (then != Then::Skips) continue;
    const bool is_right = skipped->ranks == std::vector<int>{0} && skipped->iteration == 2 &&
                          skipped->cause.kind == dist::CauseKind::Exception &&
                          skipped->cause.place == Place(forward_at) &&
                          skipped->message.find("no memory for the activations") != std::string::npos;
    if (!is_right) return skipped->message;
  }
  return "";
}
const AddRankCase add_skipped("a batch that one rank skips after an error, and others do not, is reported in that step",
                              &check_skipped, everywhere({2, 3}));

// An exception ends the training of every rank, and all start again with the same group.
std::string check_started_again(const dist::ProcessGroupPtr& group) {
  for (const bool fails : {true, false}) {
    try {
      Fragile net;
      dist::DistributedDataParallel<Fragile> ddp(net, group);
      for (int step = 0; step < 2; ++step)
        loss_of(ddp(batch_of(group->rank(), step))).backward();
      if (fails) throw std::runtime_error("the disk is full");
    } catch (const std::runtime_error&) {
      if (!fails) throw;
    }
  }
  const Tensor sum = ones({1000});
  group->all_reduce(sum)->wait();
  return sum.to_vector<float>().back() == static_cast<float>(group->size()) ? "" : "another sum";
}
const AddRankCase add_started_again("ranks that start again after an exception leave in order", &check_started_again,
                                    everywhere({2, 3}));

}  // namespace brigade::test::skipped_batches_cases
