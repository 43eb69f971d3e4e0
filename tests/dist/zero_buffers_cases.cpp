// ZeRO with its parameters in one buffer per owner equals ZeRO without, bit for bit.
#include "nets.h"
#include "rank_case.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

namespace brigade::test::zero_buffers_cases {
using Net = BranchingNet;
using Ddp = dist::DistributedDataParallel<Net>;
using Zero = dist::ZeroRedundancyOptimizer<optim::AdamW>;

constexpr int kSteps = 5;

struct Trainer {
  Net net;
  Ddp ddp;
  Zero zero;

  explicit Trainer(const dist::ProcessGroupPtr& group)
      : net(seeded()),
        ddp(net, group, {.find_unused_parameters = true}),
        zero(net->parameters(), {.lr = 0.05}, group) {}
  static Net seeded() {
    manual_seed(1);
    return Net();
  }
  std::string bits() { return bits_of(net->parameters()); }
  void train(int step) {
    const int rank = ddp.group().rank();
    RandomGenerator generator(100 + 7 * static_cast<uint64_t>(rank) + 31 * static_cast<uint64_t>(step));
    zero.zero_grad();
    mean(square(ddp(randn({5, 4}, kFloat32, &generator)) - 1.0)).backward();
    zero.step();
  }
};

// The broadcasts of a step: "dtype count" of each.
std::vector<std::string> sent_by_step(Trainer& trainer, int step) {
  std::vector<std::string> sent;
  const auto latest = trainer.ddp.group().flight_recorder().entries().back().sequence;
  trainer.train(step);
  for (const dist::CollectiveInfo& each : trainer.ddp.group().flight_recorder().entries()) {
    if (each.sequence > latest && each.topic.phase == dist::Phase::Optimizer)
      sent.push_back(fmt::format("{} {}", dtype_in_words(each), each.count));
  }
  return sent;
}

std::vector<const void*> addresses_of(const std::vector<Tensor>& tensors) {
  std::vector<const void*> addresses;
  for (const Tensor& tensor : tensors)
    addresses.push_back(tensor.raw_data());
  return addresses;
}

std::string check_buffers(const dist::ProcessGroupPtr& group) {
  Trainer plain(group), buffered(group);
  for (int s = 0; s < 2; ++s) {
    plain.train(s);
    buffered.train(s);
  }
  const std::string before = buffered.bits();
  const std::vector<const void*> old = addresses_of(buffered.net->parameters());
  buffered.zero.use_parameters_as_bucket_view();
  if (buffered.bits() != before) return "moving the parameters has changed them";
  const std::vector<const void*> places = addresses_of(buffered.net->parameters());
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] == old[i]) return fmt::format("parameter {} has not moved", i);
  }
  for (int s = 2; s < kSteps; ++s) {
    plain.net->skip_b = buffered.net->skip_b = s == 3;
    plain.train(s);
    const std::vector<std::string> sent = sent_by_step(buffered, s);
    if (buffered.bits() != plain.bits()) return fmt::format("other bits after step {}", s);
    // One broadcast per owner, of the parameters' own memory: elements, not bytes of a message.
    std::vector<std::string> expected;
    for (int owner = 0; owner < group->size(); ++owner) {
      int64_t count = 0;
      for (size_t i = 0; i < places.size(); ++i) {
        if (buffered.zero.owners()[i] == owner) count += (buffered.net->parameters()[i].numel() + 15) / 16 * 16;
      }
      expected.push_back(fmt::format("float32 {}", count));
    }
    if (sent != expected) return fmt::format("step {} has sent something else, first {}", s, sent.front());
  }
  if (addresses_of(buffered.net->parameters()) != places) return "a step has moved the memory";
  // The states are the same with and without buffers.
  for (Trainer* each : {&plain, &buffered}) {
    each->zero.consolidate_state_dict(0);
  }
  if (group->rank() == 0) {
    const auto expected = plain.zero.state_dict(), found = buffered.zero.state_dict();
    for (size_t i = 0; i < expected.tensors.size(); ++i) {
      if (bits_of({found.tensors[i].second}) != bits_of({expected.tensors[i].second})) return "the state";
    }
  }
  return "";
}
const AddRankCase add_buffers("ZeRO over buffers is ZeRO bit for bit, by one broadcast per owner of the memory itself",
                              &check_buffers, everywhere({2, 3}));

// Frozen parameters are not overwritten; a second call takes in new groups.
std::string check_others(const dist::ProcessGroupPtr& group) {
  Trainer plain(group), buffered(group);
  buffered.zero.use_parameters_as_bucket_view();
  for (Trainer* each : {&plain, &buffered}) {
    each->train(0);
    each->net->b->weight.requires_grad_(false);
    {
      const NoGradGuard no_grad;
      each->net->b->weight.fill_(1.0 + group->rank());  // differs between ranks
    }
    each->train(1);
  }
  if (buffered.bits() != plain.bits()) return "a frozen parameter was sent";
  const Tensor more = ones({3}).requires_grad_();
  buffered.zero.add_param_group({more});
  for (int call = 0; call < 2; ++call) {
    more.set_grad(ones({3}));
    buffered.zero.use_parameters_as_bucket_view();
    plain.train(2 + call);
    buffered.train(2 + call);
    if (buffered.bits() != plain.bits()) return "other bits with another group";
  }
  return "";
}
const AddRankCase add_others("ZeRO over buffers, with parameters that are frozen and added later", &check_others,
                             everywhere({2}));

// A write to one parameter is no write to its neighbors: a graph that has saved a neighbor can still run.
std::string check_versions(const dist::ProcessGroupPtr& group) {
  const Tensor used = ones({4}).requires_grad_(), other = ones({4}).requires_grad_();
  {
    const NoGradGuard no_grad;
    used.mul_(1.0);
  }
  const Tensor saved = sum(used * used);  // before the move
  dist::ZeroRedundancyOptimizer<optim::SGD> zero({used, other}, {.lr = 0.5}, group);
  const uint32_t version = used.version();
  zero.use_parameters_as_bucket_view();
  if (used.version() != version) return "the version was lost";
  saved.backward();
  if (used.grad().to_vector<double>() != std::vector<double>(4, 2)) return "the gradient of a graph from before";
  const Tensor loss = sum(used * used);
  {
    const NoGradGuard no_grad;
    other.mul_(2.0);
  }
  loss.backward();
  const Tensor again = sum(used * used);
  zero.step();
  return expect_error<AutogradError>([&] { again.backward(); }, {"modified by an inplace operation"});
}
const AddRankCase add_versions("parameters in one buffer keep versions of their own", &check_versions, everywhere({2}));

std::string check_refused(const dist::ProcessGroupPtr& group) {
  const Tensor first = ones({4}).requires_grad_(), second = ones({4, 2}).requires_grad_();
  const Tensor turned = ones({2, 3}).t().detach().requires_grad_();
  std::vector<std::string> wrong;
  {
    const Tensor view = second.detach();
    dist::ZeroRedundancyOptimizer<optim::SGD> zero({first, second}, {.lr = 0.5}, group);
    const void* const place = first.raw_data();
    wrong.push_back(expect_error<ValueError>([&] { zero.use_parameters_as_bucket_view(); },
                                             {"parameter 1", "shares its memory", "zero_buffers_cases.cpp:"}));
    if (first.raw_data() != place) return "a refused call has moved a parameter";
  }
  dist::ZeroRedundancyOptimizer<optim::SGD> zero({first, turned}, {.lr = 0.5}, group);
  wrong.push_back(
      expect_error<ValueError>([&] { zero.use_parameters_as_bucket_view(); }, {"parameter 1", "not contiguous"}));
  for (const std::string& each : wrong) {
    if (!each.empty()) return each;
  }
  return "";
}
const AddRankCase add_refused("ZeRO over buffers refuses memory that others hold", &check_refused, everywhere({2}));

}  // namespace brigade::test::zero_buffers_cases
