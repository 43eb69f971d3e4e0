// Updates that the program writes itself, without an optimizer: different ones are found in the next reduced backward.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <optional>

namespace brigade::test::hand_updates_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

enum class How {
  // Nothing is wrong.
  Alike,
  Adapted,     // first-order MAML by hand: the reduced backward comes at weights that differ, which are put back
  Evaluated,   // rank 0 looks at other weights in between
  Loaded,      // by rank 0, which then sends them to all
  Perturbed,   // each rank's own noise, taken back before the optimizer steps
  OwnIgnored,  // an ignored parameter is each rank's own
  NotSent,     // a hook leaves the gradients, and so the weights, each rank's own
  // The replicas drift apart.
  OtherRate,  // on the last rank
  Local,      // the last micro-batch is under no_sync
  NotOnOne,   // the last rank leaves out an update
};

thread_local SourceLocation update_at;

void update(Net& net, double rate) {
  const NoGradGuard no_grad;
  for (const Tensor& parameter : net->parameters()) {
    update_at = SourceLocation::current();
    if (parameter.grad().defined()) parameter.sub_(parameter.grad(), rate, update_at);
  }
}

std::vector<Tensor> copies_of(Net& net) {
  std::vector<Tensor> copies;
  for (const Tensor& parameter : net->parameters())
    copies.push_back(parameter.detach().clone());
  return copies;
}

void put_back(Net& net, const std::vector<Tensor>& copies) {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < copies.size(); ++i)
    net->parameters()[i].copy_(copies[i]);
}

// What rank 0 does to the weights for a while.
void add_noise(Net& net, int seed, double factor) {
  const NoGradGuard no_grad;
  RandomGenerator generator(static_cast<uint64_t>(seed));
  for (const Tensor& parameter : net->parameters())
    parameter.add_(randn(parameter.sizes(), parameter.dtype(), &generator), factor);
}

Values train(const dist::ProcessGroupPtr& group, How how, DType dtype) {
  const int rank = group->rank(), last = group->size() - 1;
  manual_seed(1);
  Net net;
  net->to(dtype);
  dist::DDPOptions options;
  if (how == How::OwnIgnored) options.parameters_and_buffers_to_ignore = {"c.bias"};
  Ddp ddp(net, group, options);
  std::optional<optim::SGD> optimizer;
  if (how == How::Perturbed) optimizer.emplace(net->parameters(), optim::SGDOptions{.lr = 0.1});
  if (how == How::OwnIgnored) net->c->bias.detach().fill_(rank);
  if (how == How::NotSent) ddp.register_comm_hook(dist::noop_hook());
  if (how == How::Loaded && rank == 0) add_noise(net, 5, 0.1);
  if (how == How::Loaded)
    for (const Tensor& parameter : net->parameters())
      group->broadcast(parameter.detach(), {})->wait();
  const auto backward = [&](int step) { loss_of(ddp(batch_of(rank, step).to(dtype))).backward(); };
  for (int s = 0; s < kSteps; ++s) {
    std::vector<Tensor> start;
    if (how == How::Adapted || how == How::Evaluated) start = copies_of(net);
    if (how == How::Adapted) {
      const auto local = ddp.no_sync();
      backward(100 + s);
      update(net, 0.05);
      net->zero_grad();
    }
    if (how == How::Evaluated && rank == 0) {
      add_noise(net, s, 0.1);
      static_cast<void>(ddp(batch_of(rank, 0)));
      put_back(net, start);
    }
    if (how == How::Perturbed) add_noise(net, 10 * s + rank, 0.1);
    backward(s);
    if (how == How::Local) {
      const auto local = ddp.no_sync();
      backward(100 + s);
    }
    if (how == How::Adapted) put_back(net, start);
    if (how == How::Perturbed) {
      add_noise(net, 10 * s + rank, -0.1);
      optimizer->step();
    } else if (how != How::NotOnOne || s != 1 || rank != last) {
      update(net, how == How::OtherRate && rank == last ? 0.15 : 0.1);
    }
    net->zero_grad();
  }
  return values_of(net->parameters());
}

std::string check_alike(const dist::ProcessGroupPtr& group) {
  for (const DType dtype : {kFloat64, kFloat32, kBFloat16})
    train(group, How::Alike, dtype);
  for (const How how : {How::Adapted, How::Evaluated, How::Loaded, How::Perturbed, How::OwnIgnored, How::NotSent})
    train(group, how, kFloat64);
  const Values moved = train(group, How::Alike, kFloat64);
  manual_seed(1);
  Net net;
  for (int s = 0; s < kSteps; ++s) {
    loss_of(net(whole_batch(group->size(), s))).backward();
    update(net, 0.1);
    net->zero_grad();
  }
  return compare(moved, values_of(net->parameters()), 1e-9);
}
const AddRankCase add_alike("updates by hand that leave all ranks the same weights are not stopped", &check_alike,
                            everywhere({2, 3}));

std::string check_apart(const dist::ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  struct Row {
    How how;
    DType dtype;
    uint64_t iteration;
    bool is_one;  // rank that wrote something else, the last
  };
  const Row rows[] = {{How::OtherRate, kFloat64, 2, true},
                      {How::OtherRate, kFloat32, 2, true},
                      {How::OtherRate, kBFloat16, 2, true},
                      {How::Local, kFloat64, 3, false},  // the first update came after a forward at the same weights
                      {How::NotOnOne, kFloat64, 3, true}};
  for (const Row& row : rows) {
    std::string wrong = "nothing was said";
    try {
      train(group, row.how, row.dtype);
    } catch (const dist::ConsistencyError& error) {
      const dist::Verdict& verdict = error.verdicts().at(0);
      std::vector<int> ranks;
      for (int r = 0; r <= last; ++r)
        if (!row.is_one || group->size() == 2 || r == last) ranks.push_back(r);
      const bool is_right = error.verdicts().size() == 1 && verdict.kind == "parameters_written" &&
                            verdict.iteration == row.iteration && verdict.parameters.size() == 6 &&
                            verdict.cause.place == Place(update_at) && verdict.cause.op == "sub_" &&
                            verdict.ranks == ranks;
      wrong = is_right ? "" : fmt::format("iteration {}: {}", verdict.iteration, error.what());
    }
    if (!wrong.empty()) return fmt::format("case {}: {}", static_cast<int>(row.how), wrong);
  }
  return "";
}
const AddRankCase add_apart(
    "updates by hand that make the ranks' weights differ are found in the next reduced backward", &check_apart,
    everywhere({2, 3}));

}  // namespace brigade::test::hand_updates_cases
