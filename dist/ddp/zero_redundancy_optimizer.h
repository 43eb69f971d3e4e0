// ZeRO stage 1: the states of an optimizer are split over the ranks.
//
//   dist::ZeroRedundancyOptimizer<optim::AdamW> optimizer(net->parameters(), {.lr = 1e-3}, group);
//
// Each parameter belongs to one rank, which alone keeps its state (moments), steps it, and sends
// the result to the others: memory for states goes down by the number of ranks, and the parameters
// are, bit for bit, those of the plain optimizer. Whole parameters are dealt out greedily, the
// largest first to the rank that has least. Source: Rajbhandari, Rasley, Ruwase, He: "ZeRO: memory
// optimizations toward training trillion parameter models", SC 2020. Gradients must be averaged
// before step(), as DistributedDataParallel does; overlap_with_ddp() begins the step while backward
// runs.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/ddp/detail/owner_buffer.h>
#include <brigade/dist/ddp/joinable.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/optim/optimizer.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace brigade::dist {

class DistributedDataParallelBase;

// Element i: the rank that owns parameter i. Deterministic: equals keep their order, and go to the
// lower rank. The first parameters stay with the `owners` that they have.
std::vector<int> assign_owners(const std::vector<Tensor>& parameters, int ranks, std::vector<int> owners = {});

// What does not depend on the kind of the optimizer.
// In a Join, a rank without data steps its share with the gradients that the wrapper in the same
// Join has averaged.
class ZeroRedundancyOptimizerBase : public optim::Optimizer, public Joinable {
 public:
  // From now on backward moves the parameters: those of a bucket of `ddp` as soon as it is reduced,
  // each on its owner, whose broadcast is under way while backward goes on; all have arrived when
  // backward returns. The values are, bit for bit, those without. (PyTorch: overlap_with_ddp and
  // hook_with_zero_step_interleaved; here with any communication hook, and no step is left out.)
  //
  //   zero.overlap_with_ddp(ddp);  // then as ever: zero_grad(), backward(), step()
  //
  // step() has to follow each such backward. It moves what backward has not: parameters outside
  // `ddp`, or of a backward that stayed local. What comes between the two is too late, and a
  // ValueError in step(): gradients that were changed (clipped, unscaled) and options. So is another
  // backward to a parameter that has moved: several are summed under no_sync(). After an error in
  // backward the buckets before it may have moved, on all ranks alike; no step() is due then.
  //
  // Throws ValueError when `ddp` has another process group, holds none of the parameters, or moves
  // them in backward already.
  void overlap_with_ddp(DistributedDataParallelBase& ddp, SourceLocation where = SourceLocation::current());

  // From now on the parameters of one owner (those of one dtype and device) lie side by side in one
  // buffer, and a step sends that buffer as it is: no message is packed or unpacked.
  // (PyTorch: parameters_as_bucket_view.) On every rank alike; the values are the same to the bit.
  // Frozen parameters stay where they are. One that is frozen later, or that overlap_with_ddp has
  // moved, has its owner's parameters sent as without; new groups are, until this is called again.
  // Every parameter of a buffer counts as written on the ranks that receive it.
  //
  // The parameters stay the same tensors, with their gradients and graphs; only their addresses
  // change. Throws ValueError for a parameter that is not contiguous, or that shares its memory with
  // another tensor (a view, a detached one); then nothing has changed.
  void use_parameters_as_bucket_view(SourceLocation where = SourceLocation::current());

  // Gathers the states of all ranks on rank `to`, as copies, in pieces of up to 25 MiB. Collective.
  // Throws ValueError when there is no such rank.
  void consolidate_state_dict(int to = 0, SourceLocation where = SourceLocation::current());
  // What the plain optimizer over all parameters would give, entry for entry, with the options of
  // now. Throws DistError on a rank that has not consolidated since the last step. So
  // optim::Checkpoint saves it:
  //   zero.consolidate_state_dict(0);                       // every rank
  //   if (group->rank() == 0) checkpoint.save(path);
  // and every rank loads, also on another number of ranks.
  optim::OptimizerState state_dict() const override;
  // The state of a plain optimizer, or a consolidated one, on every rank; each keeps its part. All
  // of it is checked on every rank, so that all refuse it or none does. Local; whether every rank has
  // loaded, and the same, is compared before the next step (StepCheck).
  void load_state_dict(const optim::OptimizerState& state, SourceLocation where = SourceLocation::current()) override;
  std::function<void()> undo_point() override;
  // The owner of each parameter, in the order of parameters().
  const std::vector<int>& owners() const noexcept { return owners_; }

  std::unique_ptr<JoinHook> join_hook(const JoinOptions& options) override;
  ProcessGroup& join_process_group() const noexcept override { return *group_; }

 protected:
  ZeroRedundancyOptimizerBase(ProcessGroupPtr group, SourceLocation made_at);
  // Checks that all ranks have the same parameters and options, and deals out those without an
  // owner.
  void assign(SourceLocation where);
  // Whether this rank owns parameter i.
  bool owns(size_t i) const noexcept { return owners_[i] == group_->rank(); }
  bool overlaps() const noexcept { return overlap_ != nullptr; }
  void do_step() override;
  // The ranks hold different parts; what they have alike is the whole that was loaded since the latest step.
  std::vector<autograd::KeptState> kept_state() const override { return loaded_; }

  // --- What the kind decides.
  // One of the kind over all parameters, with the options of now and no state.
  virtual std::unique_ptr<optim::Optimizer> plain() const = 0;
  // This rank's part; null when it owns nothing. It gets the options of now.
  virtual optim::Optimizer* inner() = 0;
  // Moves those of this rank's `parameters` that have a gradient, with the options of now.
  virtual void step_part(std::span<const Tensor> parameters, double grad_factor, SourceLocation where) = 0;
  // Takes the options of one that plain() made.
  virtual void take_options(const optim::Optimizer& plain) = 0;

 private:
  class Overlap;  // detail/zero_overlap.h
  static Topic topic_of_broadcast(int owner);
  void send_buffers(const std::vector<Tensor>& all, std::vector<uint8_t>& to_send);
  ProcessGroupPtr group_;
  std::vector<int> owners_;
  std::shared_ptr<Overlap> overlap_;
  std::vector<detail::OwnerBuffer> buffers_;
  std::shared_ptr<const optim::OptimizerState> consolidated_;
  // In the place of each tensor of the whole two numbers of it (values_of()): nobody keeps the whole.
  std::vector<autograd::KeptState> loaded_;
};

// `Inner`: optim::SGD, Adam, AdamW, or another GroupedOptimizer.
template <class Inner>
class ZeroRedundancyOptimizer final : public ZeroRedundancyOptimizerBase {
 public:
  using Options = std::remove_cvref_t<decltype(std::declval<Inner&>().options())>;
  using Group = typename Inner::Group;

  // Collective; the same parameters and options on every rank. Throws what Inner throws for them,
  // DistError when the ranks differ (names the first entry and who holds what), ValueError for an
  // empty group.
  ZeroRedundancyOptimizer(std::vector<Tensor> parameters, const Options& options, ProcessGroupPtr group,
                          SourceLocation where = SourceLocation::current())
      : ZeroRedundancyOptimizer(std::vector<Group>{{std::move(parameters), options}}, std::move(group), where) {}
  ZeroRedundancyOptimizer(std::vector<Group> groups, ProcessGroupPtr group,
                          SourceLocation where = SourceLocation::current())
      : ZeroRedundancyOptimizerBase(std::move(group), where), groups_(std::move(groups)) {
    plain();  // judges parameters and options
    defaults_ = groups_.front().options;
    assign(where);
    for (size_t g = 0; g < groups_.size(); ++g)
      take_share_of(g);
  }

  // Another group, with the options of the constructor (of its first group) unless given. Its
  // parameters go to the ranks that have least; the others stay where their states are. Collective.
  // Throws as the constructors; then nothing has changed.
  void add_param_group(std::vector<Tensor> parameters, SourceLocation where = SourceLocation::current()) {
    add_param_group(std::move(parameters), Options(defaults_), where);
  }
  void add_param_group(std::vector<Tensor> parameters, const Options& options,
                       SourceLocation where = SourceLocation::current()) {
    groups_.push_back({std::move(parameters), options});
    try {
      plain();
      assign(where);
    } catch (...) {
      groups_.pop_back();
      throw;
    }
    take_share_of(groups_.size() - 1);
  }

  size_t groups() const noexcept override { return groups_.size(); }
  // To change a hyperparameter between steps; on every rank alike. Throws std::out_of_range.
  Options& options(size_t group = 0) { return groups_.at(group).options; }
  const Options& options(size_t group = 0) const { return groups_.at(group).options; }
  std::string options_text() const override { return optim::detail::options_text(groups_); }

  // Half parameters move in float32 copies on their owner; all ranks get what these round to.
  bool keeps_master_weights() const override {
    return std::all_of(groups_.begin(), groups_.end(),
                       [](const Group& group) { return optim::detail::in_copies(group.options); });
  }
  // A rank that owns nothing multiplies nothing. What moves in backward has moved by then.
  bool takes_grad_factor() const override { return !overlaps() && (!inner_ || inner_->takes_grad_factor()); }

  double lr(size_t group = 0) const override { return options(group).lr; }
  // Reaches captured steps of this rank's part (optim/optimizer.h).
  void set_lr(size_t group, double lr) override {
    options(group).lr = lr;
    const auto shard = std::ranges::find(group_of_shard_, group);
    if (shard != group_of_shard_.end()) inner_->set_lr(static_cast<size_t>(shard - group_of_shard_.begin()), lr);
  }
  bool has_momentum() const noexcept override { return optim::detail::momentum_of(defaults_) != nullptr; }
  double momentum(size_t group = 0) const override {
    const auto* const found = optim::detail::momentum_of(options(group));
    return found ? *found : Optimizer::momentum(group);
  }
  void set_momentum(size_t group, double momentum) override {
    auto* const found = optim::detail::momentum_of(options(group));
    if (!found) return Optimizer::set_momentum(group, momentum);
    *found = momentum;
  }

 protected:
  const std::vector<Tensor>& group_parameters(size_t group) const override { return groups_[group].parameters; }
  std::unique_ptr<optim::Optimizer> plain() const override { return std::make_unique<Inner>(groups_); }
  optim::Optimizer* inner() override {
    for (size_t g = 0; g < group_of_shard_.size(); ++g)
      inner_->options(g) = groups_[group_of_shard_[g]].options;
    return inner_.get();
  }
  void step_part(std::span<const Tensor> parameters, double grad_factor, SourceLocation where) override {
    if (inner()) inner_->step_part(parameters, grad_factor, where);
  }
  void take_options(const optim::Optimizer& plain) override {
    for (size_t g = 0; g < groups_.size(); ++g)
      groups_[g].options = static_cast<const Inner&>(plain).options(g);
  }

 private:
  // This rank's parameters of a group that was dealt out.
  void take_share_of(size_t g) {
    size_t i = 0;
    for (size_t before = 0; before < g; ++before)
      i += groups_[before].parameters.size();
    std::vector<Tensor> own;
    for (const Tensor& parameter : groups_[g].parameters) {
      if (owns(i++)) own.push_back(parameter);
    }
    if (own.empty()) return;
    if (inner_) {
      inner_->add_param_group(std::move(own), groups_[g].options);
    } else {
      inner_ = std::make_unique<Inner>(std::vector<Group>{{std::move(own), groups_[g].options}});
    }
    group_of_shard_.push_back(g);
  }

  Options defaults_;
  std::vector<Group> groups_;           // all parameters; these options count
  std::unique_ptr<Inner> inner_;        // over this rank's
  std::vector<size_t> group_of_shard_;  // which of groups_ each group of inner_ is
};

}  // namespace brigade::dist
