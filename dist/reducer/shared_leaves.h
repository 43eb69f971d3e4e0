// Parameters that several reducers manage: a layer of two wrapped modules, or a module that is wrapped again while its
// old wrapper lives. In each backward one of them averages such a gradient: the first, in the order of construction, with
// a forward in it, whether its gradient is reached or not; without any, the first of which it reaches a parameter of its
// own; without any, the one that did so before. All ranks construct alike, and choose alike.
//
// What a rank has recorded may differ: a block that one rank skips leaves nothing in its graph. So a forward counts as in
// the backward where the reducer takes its part for it, as its peers do: it waits for its backward, and this one reaches a
// parameter of its own, or goes through what it recorded, or it has recorded nothing.
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

// Those of one reducer. Who averages which stands in ReducerSetup::sharing.
class SharedLeaves {
 public:
  // All of these outlive it.
  SharedLeaves(ReducerSetup& setup, const Buckets& buckets, Accumulation& accumulation)
      : setup_(setup), buckets_(buckets), accumulation_(accumulation) {}
  SharedLeaves(const SharedLeaves&) = delete;
  SharedLeaves& operator=(const SharedLeaves&) = delete;

  // Once `self`, to which this belongs, observes its parameters: it averages those that others had before.
  void begin(const autograd::Listener& self);
  // Once it does not observe `parameter` any more: its gradient moves to another reducer. False: there is none.
  bool hand_over(uint32_t parameter) noexcept;

  void begin_forward();
  void end_forward() noexcept;
  // A backward is about to reach the `planned` ones of `self`: decides who averages each, reached or not. Those of others
  // are taken out of `planned`. Returns nothing where there are none.
  std::vector<OfOthers> share_out(const autograd::Plan& plan, std::vector<uint8_t>& planned);
  // The same where `reducers`, among them `self`, take their parts without a backward of this rank.
  std::vector<OfOthers> share_out_among(std::span<const Reducer* const> reducers);
  // This reducer averages what no other does in this backward; `of_others` is what share_out() returned.
  void take_unclaimed(std::span<const OfOthers> of_others);
  // Whether the backward goes through a forward. One that has recorded nothing counts as in the first backward after it.
  bool has_forward_in(const autograd::Plan& plan);
  // Whether another reducer of one of them is in a join, in which ranks step by themselves; how many such joins have ended.
  bool are_in_join() const;
  uint64_t joins() const noexcept { return joins_; }
  // A join that `self` was in has ended.
  void note_end_of_join();
  // This reducer has averaged those that have `users`: nothing of them is local to the others.
  void reduced(std::span<const int> users);

 private:
  // How much speaks for it to average what it shares in this backward.
  enum class Claim : uint8_t { None, OwnParameter, Forward };
  struct Sharer {
    const Reducer* reducer;
    SharedLeaves* leaves;
    uint32_t parameter;  // its position there
  };
  // In the order in which they were constructed; but for `self`.
  static std::vector<Sharer> sharers_of(const Tensor& leaf, const autograd::Listener* self);
  // The others of all leaves.
  std::vector<Sharer> sharing_reducers() const;
  static Claim claim_to(const autograd::Plan& plan, const Sharer& sharer);
  // `claim`: of a sharer, for all of them the same.
  template <class F>
  std::vector<OfOthers> share_out_by(F&& claim, std::vector<uint8_t>& planned);
  void average_here(uint32_t parameter);
  void average_elsewhere(uint32_t parameter) noexcept;

  struct Forward {
    uint64_t from, to;      // in terms of autograd::recorded_nodes()
    uint64_t backward = 0;  // where it has recorded nothing: the number of the first one after it
  };

  ReducerSetup& setup_;
  const Buckets& buckets_;
  Accumulation& accumulation_;
  const autograd::Listener* self_ = nullptr;
  size_t count_ = 0;  // of the parameters that are shared
  std::deque<Forward> forwards_;
  uint64_t joins_ = 0;
};

}  // namespace brigade::dist
