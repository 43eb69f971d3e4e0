// ZeRO stage 1: the states of an optimizer are split over the ranks.
//
//   dist::ZeroRedundancyOptimizer<optim::AdamW> optimizer(net->parameters(), {.lr = 1e-3}, group);
//
// Each parameter belongs to one rank, which alone keeps its state (moments), steps it, and sends
// the result to the others: memory for states goes down by the number of ranks, and the parameters
// are, bit for bit, those of the plain optimizer. Whole parameters are dealt out greedily, the
// largest first to the rank that has least. Source: Rajbhandari, Rasley, Ruwase, He: "ZeRO: memory
// optimizations toward training trillion parameter models", SC 2020. Gradients must be averaged
// before step(), as DistributedDataParallel does.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/optim/optimizer.h>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace brigade::dist {

// Element i: the rank that owns parameter i. Deterministic: equals keep their order, and go to the
// lower rank.
std::vector<int> assign_owners(const std::vector<Tensor>& parameters, int ranks);

// What does not depend on the kind of the optimizer.
class ZeroRedundancyOptimizerBase : public optim::Optimizer {
 public:
  // Gathers the states of all ranks on rank `to`, as copies, in pieces of up to 25 MiB. Collective.
  // Throws ValueError when there is no such rank.
  void consolidate_state_dict(int to = 0, SourceLocation where = SourceLocation::current());
  // What the plain optimizer over all parameters would give, entry for entry. Throws DistError on a
  // rank that has not consolidated since the last step.
  optim::OptimizerState state_dict() const override;
  // The state of a plain optimizer, or a consolidated one, on every rank; each keeps its part. All
  // of it is checked on every rank, so that all refuse it or none does. Local.
  void load_state_dict(const optim::OptimizerState& state) override;
  // The owner of each parameter, in the order of parameters().
  const std::vector<int>& owners() const noexcept { return owners_; }

 protected:
  explicit ZeroRedundancyOptimizerBase(ProcessGroupPtr group);
  // The end of construction: checks that all ranks have the same parameters and options, and deals
  // out.
  void assign(SourceLocation where);
  // Whether this rank owns parameter i.
  bool owns(size_t i) const noexcept { return owners_[i] == group_->rank(); }
  void do_step() override;

  // --- What the kind decides.
  // One of the kind over all parameters, with the options of now and no state.
  virtual std::unique_ptr<optim::Optimizer> plain() const = 0;
  // This rank's part; null when it owns nothing. It gets the options of now.
  virtual optim::Optimizer* inner() = 0;
  // Takes the options of one that plain() made.
  virtual void take_options(const optim::Optimizer& plain) = 0;

 private:
  ProcessGroupPtr group_;
  std::vector<int> owners_;
  std::unique_ptr<optim::OptimizerState> consolidated_;
  SourceLocation step_at_;
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
      : ZeroRedundancyOptimizerBase(std::move(group)), groups_(std::move(groups)) {
    plain();  // judges parameters and options
    assign(where);
    std::vector<Group> shard;
    size_t i = 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<Tensor> own;
      for (const Tensor& parameter : groups_[g].parameters) {
        if (owns(i++)) own.push_back(parameter);
      }
      if (own.empty()) continue;
      shard.push_back({std::move(own), groups_[g].options});
      group_of_shard_.push_back(g);
    }
    if (!shard.empty()) inner_ = std::make_unique<Inner>(std::move(shard));
  }

  size_t groups() const noexcept override { return groups_.size(); }
  // To change a hyperparameter between steps; on every rank alike. Throws std::out_of_range.
  Options& options(size_t group = 0) { return groups_.at(group).options; }
  const Options& options(size_t group = 0) const { return groups_.at(group).options; }
  std::string options_text() const override { return optim::detail::options_text(groups_); }

 protected:
  const std::vector<Tensor>& group_parameters(size_t group) const override { return groups_[group].parameters; }
  std::unique_ptr<optim::Optimizer> plain() const override { return std::make_unique<Inner>(groups_); }
  optim::Optimizer* inner() override {
    for (size_t g = 0; g < group_of_shard_.size(); ++g)
      inner_->options(g) = groups_[group_of_shard_[g]].options;
    return inner_.get();
  }
  void take_options(const optim::Optimizer& plain) override {
    for (size_t g = 0; g < groups_.size(); ++g)
      groups_[g].options = static_cast<const Inner&>(plain).options(g);
  }

 private:
  std::vector<Group> groups_;           // all parameters; these options count
  std::unique_ptr<Inner> inner_;        // over this rank's
  std::vector<size_t> group_of_shard_;  // which of groups_ each group of inner_ is
};

}  // namespace brigade::dist
