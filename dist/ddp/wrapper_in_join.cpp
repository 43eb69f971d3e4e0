// Implements a wrapper in a join: the part of a rank without data in the others' forwards and backwards, and the
// model that all ranks hold at the end.
#include <brigade/autograd/listener.h>
#include <brigade/autograd/meta.h>
#include <brigade/core/factory.h>
#include <brigade/dist/ddp/detail/broadcast_coalesced.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/join.h>

namespace brigade::dist {

class DistributedDataParallelBase::InJoin final : public JoinHook, private JoinPolicy {
 public:
  InJoin(DistributedDataParallelBase& ddp, const JoinOptions& options)
      : ddp_(ddp), divides_by_participants_(!options.divide_by_initial_world_size) {
    ddp_.reducer_->set_join(this);
    if (ddp_.step_check_) ddp_.step_check_->pause_for_join();
  }
  ~InJoin() override {
    ddp_.reducer_->set_join(nullptr);
    if (ddp_.step_check_) ddp_.step_check_->resume_after_join();
  }

  void main_hook_at(const JoinTurn& turn) override {
    if (turn.what == kForwardWithBuffers) ddp_.broadcast_buffers_from(turn.source, turn.where);
    if (turn.what == kBackward) ddp_.reducer_->shadow_round(turn.where);
  }

  void post_hook(bool is_last_joiner) override {
    ProcessGroup& group = *ddp_.group_;
    const SourceLocation where = ddp_.join_where();
    const Tensor own = group.allocate(1, kInt64);
    const Tensor all = group.allocate(group.size(), kInt64);
    *own.data_ptr<int64_t>() = is_last_joiner ? 1 : 0;
    group.all_gather(all, own, {.topic = {Phase::EndOfJoin, Name("join: who had data to the end")}}, where)->wait();
    int source = 0;
    bool uneven = false;
    for (int r = 0; r < group.size(); ++r) {
      if (all.data_ptr<int64_t>()[r] != 0) {
        source = r;
      } else {
        uneven = true;
      }
    }
    // If each rank has its own buffers, it keeps them.
    ddp_.broadcast_model_from(source, ddp_.options_.broadcast_buffers, where);
    if (!uneven) return;
    take_gradients_of(source, is_last_joiner);
    if (ddp_.step_check_) ddp_.step_check_->compare_steps_of_join(where);
  }

  bool reduces_in_backward() const noexcept override { return true; }

  std::string describe(int64_t what) const override {
    return what == kBackward             ? "a reduced backward"
           : what == kForwardWithBuffers ? "a forward that broadcasts buffers"
                                         : "a forward";
  }

 private:
  void before_round(SourceLocation where) override { Join::notify_join_context(ddp_, kBackward, where); }
  bool waits_for_end() override { return Join::backward_waits(ddp_); }
  bool divides_by_participants() const override { return divides_by_participants_; }
  // Makes averaged gradients the same on all ranks again: those of the source, which may have clipped or cleared them
  // since. What a rank with data has accumulated under no_sync stays.
  void take_gradients_of(int source, bool is_last_joiner) const {
    const std::span<const NamedParameter> parameters = ddp_.reducer_->parameters();
    if (parameters.empty()) return;
    ProcessGroup& group = *ddp_.group_;
    const SourceLocation where = ddp_.join_where();
    const Tensor there = group.allocate(static_cast<int64_t>(parameters.size()), kUInt8);
    auto* const flags = there.data_ptr<uint8_t>();
    for (uint32_t i = 0; i < parameters.size(); ++i)
      flags[i] = parameters[i].tensor.grad().defined() && ddp_.reducer_->accumulation().local(i).backwards == 0;
    group.broadcast(there, {.root = source, .topic = {Phase::Join, Name("join: which gradients are averaged")}}, where)
        ->wait();
    std::vector<Tensor> gradients;
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      const Tensor& parameter = parameters[i].tensor;
      autograd::AutogradMeta& meta = autograd::ensure_meta(parameter);
      if (flags[i] == 0) {
        if (!is_last_joiner) meta.clear();
        continue;
      }
      if (!meta.grad.defined()) {
        const Tensor target = autograd::grad_target(parameter);
        meta.hold(target.defined() ? target : empty_like(parameter));
        meta.stamp.on_reduction(0, where);
      }
      gradients.push_back(meta.grad);
    }
    broadcast_coalesced(group, gradients, source, {Phase::Join, Name("join: averaged gradients")}, where);
  }

  DistributedDataParallelBase& ddp_;
  bool divides_by_participants_;
};

std::unique_ptr<JoinHook> DistributedDataParallelBase::join_hook(const JoinOptions& options) {
  return std::make_unique<InJoin>(*this, options);
}

}  // namespace brigade::dist
