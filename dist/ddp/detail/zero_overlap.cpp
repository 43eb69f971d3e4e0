// Implements ZeRO's step during backward: the owners step the parameters of a bucket, and broadcast them.
#include <brigade/dist/ddp/detail/zero_overlap.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/dist/ddp/detail/broadcast_coalesced.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace brigade::dist {

void ZeroRedundancyOptimizerBase::overlap_with_ddp(DistributedDataParallelBase& ddp, SourceLocation where) {
  // The order of collectives is defined within one group only.
  if (&ddp.group() != group_.get()) {
    throw ValueError(
        "overlap_with_ddp: the wrapper has another process group than the ZeroRedundancyOptimizer; give both the same",
        where);
  }
  const auto overlap = std::make_shared<Overlap>(*this, ddp.reducer(), where);
  // The optimizer may be destroyed before the wrapper.
  const std::weak_ptr<Overlap> weak = overlap;
  ddp.reducer().follow_buckets({.begins =
                                    [weak](std::span<const uint8_t> planned) {
                                      if (const auto alive = weak.lock()) alive->begins(planned);
                                    },
                                .reduced =
                                    [weak](std::span<const uint32_t> bucket, SourceLocation backward) {
                                      if (const auto alive = weak.lock()) alive->reduced(bucket, backward);
                                    },
                                .ended =
                                    [weak](bool sound) {
                                      if (const auto alive = weak.lock()) alive->ended(sound);
                                    },
                                .broken =
                                    [weak] {
                                      if (const auto alive = weak.lock()) alive->broken();
                                    },
                                .posts = true,
                                .owner = weak});
  overlap_ = overlap;
}

ZeroRedundancyOptimizerBase::Overlap::Overlap(ZeroRedundancyOptimizerBase& zero, const Reducer& reducer,
                                              SourceLocation where)
    : zero_(zero),
      gradients_are_views_(reducer.options().gradient_as_bucket_view),
      position_(reducer.parameters().size(), -1) {
  const std::vector<Tensor> all = zero.parameters();
  names_.resize(all.size());
  bool any = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t found = reducer.find(all[i]);
    if (found < 0) continue;
    any = true;
    position_[static_cast<size_t>(found)] = static_cast<int64_t>(i);
    names_[i] = reducer.parameters()[static_cast<size_t>(found)].name;
  }
  if (!any) {
    throw ValueError(
        "overlap_with_ddp: the wrapper reduces none of the parameters of the ZeroRedundancyOptimizer; give it the one "
        "around their module",
        where);
  }
}

void ZeroRedundancyOptimizerBase::Overlap::begins(std::span<const uint8_t> planned) const {
  if (moved_.empty()) return;
  for (size_t i = 0; i < planned.size(); ++i) {
    if (!planned[i] || position_[i] < 0 || !moved_.contains(static_cast<size_t>(position_[i]))) continue;
    throw ValueError(
        "ZeroRedundancyOptimizer, overlap_with_ddp: `{}` has moved in the backward at {}, and is reached by another one "
        "before step(); call step() after each backward, and let all but the last of several run under no_sync()",
        names_[static_cast<size_t>(position_[i])], to_string(backward_));
  }
}

void ZeroRedundancyOptimizerBase::Overlap::reduced(std::span<const uint32_t> bucket, SourceLocation backward) {
  if (moved_.empty()) options_ = zero_.options_text();
  const std::vector<Tensor> all = zero_.parameters();
  std::vector<std::vector<Tensor>> to_send(static_cast<size_t>(zero_.group_->size()));
  std::vector<Tensor> own;
  for (const uint32_t each : bucket) {
    if (position_[each] < 0) continue;
    const auto i = static_cast<size_t>(position_[each]);
    const auto [moved, is_new] = moved_.try_emplace(i);
    if (!is_new) continue;  // moved in an earlier backward of the same step
    moved->second.before = kernels::clone(all[i]);
    to_send[static_cast<size_t>(zero_.owners_[i])].push_back(all[i]);
    if (zero_.owns(i)) own.push_back(all[i]);
  }
  backward_ = backward;
  zero_.consolidated_.reset();
  zero_.step_part(own, 1, backward);
  for (int owner = 0; owner < zero_.group_->size(); ++owner) {
    for (WorkPtr& work : begin_broadcast_coalesced(*zero_.group_, to_send[static_cast<size_t>(owner)], owner,
                                                   topic_of_broadcast(owner), backward))
      broadcasts_.push_back(std::move(work));
  }
}

void ZeroRedundancyOptimizerBase::Overlap::ended(bool sound) {
  for (const WorkPtr& work : std::exchange(broadcasts_, {}))
    work->wait();
  if (!sound) {
    moved_.clear();
    return;
  }
  const std::vector<Tensor> all = zero_.parameters();
  for (auto& [i, each] : moved_) {
    const Tensor gradient = all[i].grad();
    each.had_gradient = gradient.defined();
    each.version = gradient.defined() ? gradient.version() : 0;
    each.before = Tensor();
  }
  writes_ = autograd::writes_so_far();
}

void ZeroRedundancyOptimizerBase::Overlap::broken() noexcept {
  broadcasts_.clear();
  try {
    const std::vector<Tensor> all = zero_.parameters();
    for (const auto& [i, each] : moved_) {
      if (!each.before.defined()) continue;
      kernels::copy(all[i], each.before);
      all[i].bump_version();
    }
  } catch (...) {  // device error
  }
  std::erase_if(moved_, [](const auto& each) { return each.second.before.defined(); });
}

void ZeroRedundancyOptimizerBase::Overlap::check_gradient(size_t parameter, const Tensor& gradient, const Moved& moved,
                                                          SourceLocation step) const {
  if (!gradient.defined()) return;  // already cleared
  std::string change;
  // A view has the version of the whole bucket, which writes to other gradients may have changed.
  if (gradients_are_views_) {
    const std::vector<autograd::Write> writes = autograd::writes_to(gradient, writes_);
    if (!writes.empty()) change = fmt::format(" by {} at {}", writes.back().op, to_string(writes.back().where));
  }
  const bool same = moved.had_gradient && (gradients_are_views_ || gradient.version() == moved.version);
  if (same && change.empty()) return;
  throw ValueError(
      step,
      "ZeroRedundancyOptimizer, overlap_with_ddp: the gradient of `{}` was changed{} after backward had moved the "
      "parameter by it. Clip or unscale gradients without overlap, or change them in a communication hook",
      names_[parameter], change);
}

std::vector<uint8_t> ZeroRedundancyOptimizerBase::Overlap::take_moved(SourceLocation step) {
  const std::vector<Tensor> all = zero_.parameters();
  std::vector<uint8_t> result(all.size(), 0);
  if (moved_.empty()) return result;
  for (const auto& [i, each] : moved_)
    check_gradient(i, all[i].grad(), each, step);
  if (const std::string now = zero_.options_text(); now != options_) {
    const std::string before = std::exchange(options_, now);
    throw ValueError(step,
                     "ZeroRedundancyOptimizer, overlap_with_ddp: backward has moved the parameters with\n{}\nwhich "
                     "is now\n{}\nset options before backward, or after step()",
                     before, now);
  }
  for (const auto& [i, each] : moved_)
    result[i] = 1;
  moved_.clear();
  return result;
}

}  // namespace brigade::dist
