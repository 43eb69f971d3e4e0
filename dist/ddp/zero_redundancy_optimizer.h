// ZeRO stage 1: shards the states of an optimizer over the ranks.
//
//   dist::ZeroRedundancyOptimizer<optim::AdamW> optimizer(net->parameters(), {.lr = 1e-3}, group);
//
// Each parameter belongs to one rank, which alone keeps its state (moments), steps it, and sends the result to the
// others: the memory for states is divided by the number of ranks, and the parameters are, bit for bit, those of the
// plain optimizer. Whole parameters are assigned greedily, the largest first to the rank with the smallest load.
// Source: Rajbhandari, Rasley, Ruwase, He: "ZeRO: memory optimizations toward training trillion parameter models", SC
// 2020. Gradients must be averaged before step(), as DistributedDataParallel does; overlap_with_ddp() starts the step
// while backward runs.
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

// Element i: the rank that owns parameter i. Deterministic: parameters of equal size keep their order, and ties go to
// the lower rank. The first parameters keep their `owners`.
std::vector<int> assign_owners(const std::vector<Tensor>& parameters, int ranks, std::vector<int> owners = {});

// The part that does not depend on the type of the inner optimizer. In a Join, a rank without data steps its share
// with the gradients that the wrapper in the same Join has averaged.
class ZeroRedundancyOptimizerBase : public optim::Optimizer, public Joinable {
 public:
  // Makes backward move the parameters from now on: the owners step the parameters of a bucket of `ddp` as soon as it
  // is reduced, and broadcast them while backward continues; all have arrived when backward returns. The values are,
  // bit for bit, those without overlap. (PyTorch: overlap_with_ddp and hook_with_zero_step_interleaved; here with any
  // communication hook, and no step is skipped.)
  //
  //   zero.overlap_with_ddp(ddp);  // then as ever: zero_grad(), backward(), step()
  //
  // step() has to follow each such backward. It moves what backward has not: parameters outside `ddp`, or of a
  // backward that stayed local. Changing gradients (clipping, unscaling) or options between the two is too late, and
  // a ValueError in step(). So is another backward that reaches a parameter that has moved: accumulate several under
  // no_sync(). After an error in backward the parameters of earlier buckets may have moved, on all ranks alike; then
  // no step() is required.
  //
  // Throws ValueError if `ddp` has another process group, holds none of the parameters, or already moves them in
  // backward.
  void overlap_with_ddp(DistributedDataParallelBase& ddp, SourceLocation where = SourceLocation::current());

  // From now on stores the parameters of each owner (those of one dtype and device) contiguously in one buffer, and a
  // step sends that buffer as it is, without packing and unpacking messages. (PyTorch: parameters_as_bucket_view.)
  // Call it on every rank alike; the values are the same, bit for bit. Frozen parameters are not moved into the
  // buffer. If a parameter is frozen later, or overlap_with_ddp has moved it, the parameters of its owner are sent as
  // without the buffer; so are new groups, until this is called again. Every parameter of a buffer counts as written
  // on the ranks that receive it.
  //
  // The parameters stay the same tensors, with their gradients and graphs; only their addresses change. Throws
  // ValueError for a parameter that is not contiguous, or that shares its memory with another tensor (a view or
  // detached tensor); then nothing has changed.
  void use_parameters_as_bucket_view(SourceLocation where = SourceLocation::current());

  // Gathers the states of all ranks on rank `to`, as copies, in pieces of up to 25 MiB. Collective. Throws ValueError
  // if that rank does not exist.
  void consolidate_state_dict(int to = 0, SourceLocation where = SourceLocation::current());
  // The state of the equivalent plain optimizer over all parameters, entry for entry, with the current options.
  // Throws DistError on a rank that has not consolidated since the last step. To save it with optim::Checkpoint:
  //   zero.consolidate_state_dict(0);                       // every rank
  //   if (group->rank() == 0) checkpoint.save(path);
  // and load on every rank; the number of ranks may differ.
  optim::OptimizerState state_dict() const override;
  // Takes the state of a plain optimizer, or a consolidated one, on every rank; each keeps its part. Every rank
  // checks the whole state, so that all refuse it or none does. Local; the next step (StepCheck) compares whether
  // every rank has loaded the same state.
  void load_state_dict(const optim::OptimizerState& state, SourceLocation where = SourceLocation::current()) override;
  std::function<void()> undo_point() override;
  // The owner of each parameter, in the order of parameters().
  const std::vector<int>& owners() const noexcept { return owners_; }

  std::unique_ptr<JoinHook> join_hook(const JoinOptions& options) override;
  ProcessGroup& join_process_group() const noexcept override { return *group_; }

 protected:
  ZeroRedundancyOptimizerBase(ProcessGroupPtr group, SourceLocation made_at);
  // Checks that all ranks have the same parameters and options, and assigns owners to parameters without one.
  void assign(SourceLocation where);
  // Whether this rank owns parameter i.
  bool owns(size_t i) const noexcept { return owners_[i] == group_->rank(); }
  bool overlaps() const noexcept { return overlap_ != nullptr; }
  void do_step() override;
  // Each rank holds a different part; common to all is the whole state that was loaded since the latest step.
  std::vector<autograd::KeptState> kept_state() const override { return loaded_; }

  // --- Defined by the inner optimizer's type.
  // An optimizer of that type over all parameters, with the current options and no state.
  virtual std::unique_ptr<optim::Optimizer> plain() const = 0;
  // This rank's part, with the current options; null if it owns nothing.
  virtual optim::Optimizer* inner() = 0;
  // Steps those of this rank's `parameters` that have a gradient, with the current options.
  virtual void step_part(std::span<const Tensor> parameters, double grad_factor, SourceLocation where) = 0;
  // Takes the options of an optimizer that plain() created.
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
  // Each tensor of the whole state is represented by two numbers (values_of()), since no rank keeps the whole.
  std::vector<autograd::KeptState> loaded_;
};

// `Inner`: optim::SGD, Adam, AdamW, or another GroupedOptimizer.
template <class Inner>
class ZeroRedundancyOptimizer final : public ZeroRedundancyOptimizerBase {
 public:
  using Options = std::remove_cvref_t<decltype(std::declval<Inner&>().options())>;
  using Group = typename Inner::Group;

  // Collective; the same parameters and options on every rank. Throws what Inner throws for them, DistError if the
  // ranks differ (names the first entry and which ranks hold which value), ValueError for an empty group.
  ZeroRedundancyOptimizer(std::vector<Tensor> parameters, const Options& options, ProcessGroupPtr group,
                          SourceLocation where = SourceLocation::current())
      : ZeroRedundancyOptimizer(std::vector<Group>{{std::move(parameters), options}}, std::move(group), where) {}
  ZeroRedundancyOptimizer(std::vector<Group> groups, ProcessGroupPtr group,
                          SourceLocation where = SourceLocation::current())
      : ZeroRedundancyOptimizerBase(std::move(group), where), groups_(std::move(groups)) {
    plain();  // validates parameters and options
    defaults_ = groups_.front().options;
    assign(where);
    for (size_t g = 0; g < groups_.size(); ++g)
      take_share_of(g);
  }

  // Adds a parameter group, with the options of the constructor (of its first group) unless given. Its parameters go
  // to the ranks with the smallest load; the others stay with their states. Collective. Throws like the constructors;
  // then nothing has changed.
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
  // Changes a hyperparameter between steps; call on every rank alike. Throws std::out_of_range.
  Options& options(size_t group = 0) { return groups_.at(group).options; }
  const Options& options(size_t group = 0) const { return groups_.at(group).options; }
  std::string options_text() const override { return optim::detail::options_text(groups_); }

  // Half parameters are stepped in float32 copies on their owner; all ranks get the rounded values.
  bool keeps_master_weights() const override {
    return std::all_of(groups_.begin(), groups_.end(),
                       [](const Group& group) { return optim::detail::in_copies(group.options); });
  }
  // A rank that owns nothing multiplies nothing. With overlap, parameters have already moved in backward.
  bool takes_grad_factor() const override { return !overlaps() && (!inner_ || inner_->takes_grad_factor()); }

  double lr(size_t group = 0) const override { return options(group).lr; }
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
  // Reaches captured steps of this rank's part (optim/optimizer.h).
  void do_set_lr(size_t group, double lr) override {
    options(group).lr = lr;
    const auto shard = std::ranges::find(group_of_shard_, group);
    if (shard != group_of_shard_.end()) inner_->set_lr(static_cast<size_t>(shard - group_of_shard_.begin()), lr);
  }
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
  // Takes this rank's parameters of a group whose owners are assigned.
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
  std::vector<Group> groups_;           // all parameters; these options are authoritative
  std::unique_ptr<Inner> inner_;        // over this rank's parameters
  std::vector<size_t> group_of_shard_;  // which of groups_ each group of inner_ is
};

}  // namespace brigade::dist
