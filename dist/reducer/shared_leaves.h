// Parameters that several reducers manage: a layer of two wrapped modules, or a module that is wrapped again while
// its old wrapper lives. In each backward one reducer averages such a gradient: the first, in construction order,
// with a forward in that backward, whether the gradient is reached or not; if none has a forward, the first with an
// unshared parameter that the backward reaches; otherwise the last one. All ranks construct in the same order, so all
// choose alike.
//
// The nodes that a rank records may differ: a block that one rank skips leaves nothing in its graph. Therefore a
// forward counts as part of the backward if its reducer takes part, as its peers do: the forward waits for its
// backward, and this backward reaches an unshared parameter of the reducer or goes through nodes that the forward
// recorded, or the forward has recorded nothing.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/reducer/options.h>

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace brigade::dist {

class Accumulation;
class Buckets;
class Reducer;

// The shared parameters of one reducer. ReducerSetup::sharing holds which reducer averages each.
class SharedLeaves {
 public:
  // The arguments must outlive this object.
  SharedLeaves(ReducerSetup& setup, const Buckets& buckets, Accumulation& accumulation)
      : setup_(setup), buckets_(buckets), accumulation_(accumulation) {}
  SharedLeaves(const SharedLeaves&) = delete;
  SharedLeaves& operator=(const SharedLeaves&) = delete;

  // Called once `self`, the owning reducer, observes its parameters: it takes over those that other reducers
  // averaged.
  void begin(const autograd::Listener& self);
  // Called once `self` no longer observes `parameter`: moves the gradient to another reducer. Returns false if there
  // is none.
  bool hand_over(uint32_t parameter) noexcept;

  void begin_forward();
  void end_forward(bool failed) noexcept;
  // Called when gradients are used: the forwards that recorded nothing are in no later backward.
  void pass_over_empty_forwards() noexcept;
  // Called when a backward is about to reach the `planned` parameters of `self`: decides which reducer averages each,
  // reached or not, and removes those of other reducers from `planned`. Returns an empty vector if there are none.
  std::vector<OfOthers> share_out(const autograd::Plan& plan, std::vector<uint8_t>& planned);
  // The same if `reducers`, including `self`, take part without a backward of this rank.
  std::vector<OfOthers> share_out_among(std::span<const Reducer* const> reducers);
  // Lets this reducer average what no other does in this backward; `of_others` is the result of share_out().
  void take_unclaimed(std::span<const OfOthers> of_others);
  // A hash of which shared parameters this reducer averages in reduced backward number `round`, for the ranks to
  // compare; 0 where they may differ, and where none is shared.
  uint64_t averages(uint64_t round) const;
  // Whether the backward goes through a forward. A forward that recorded nothing counts as part of the first backward
  // after it.
  bool has_forward_in(const autograd::Plan& plan);
  // Whether another reducer of a shared parameter is in a join, where ranks step independently; and how many such
  // joins have ended.
  bool are_in_join() const;
  uint64_t joins() const noexcept { return joins_; }
  // Called when a join of `self` has ended.
  void note_end_of_join();
  // Called when this reducer has averaged the parameters with `users`: the other reducers hold nothing local of them.
  void reduced(std::span<const int> users);

 private:
  // How strong the claim of a reducer is to average its shared parameters in this backward.
  enum class Claim : uint8_t { None, OwnParameter, Forward };
  struct Sharer {
    const Reducer* reducer;
    SharedLeaves* leaves;
    uint32_t parameter;  // its position in that reducer
  };
  // In construction order, without `self`.
  static std::vector<Sharer> sharers_of(const Tensor& leaf, const autograd::Listener* self);
  // The other reducers of all shared parameters.
  std::vector<Sharer> sharing_reducers() const;
  static Claim claim_to(const autograd::Plan& plan, const Sharer& sharer);
  // `claim`: maps a sharer to its claim, the same for all of its parameters.
  template <class F>
  std::vector<OfOthers> share_out_by(F&& claim, std::vector<uint8_t>& planned);
  void average_here(uint32_t parameter);
  void average_elsewhere(uint32_t parameter) noexcept;

  struct Forward {
    uint64_t from, to;      // in terms of autograd::recorded_nodes()
    uint64_t backward = 0;  // if nothing was recorded: the number of the first backward after it
  };

  ReducerSetup& setup_;
  const Buckets& buckets_;
  Accumulation& accumulation_;
  const autograd::Listener* self_ = nullptr;
  size_t count_ = 0;  // number of shared parameters
  std::deque<Forward> forwards_;
  uint64_t joins_ = 0;
};

}  // namespace brigade::dist
