// One reduced backward, from the plan to averaged gradients.
//
// Parameters that the backward will not reach are marked unused at once, so that no bucket waits for them. Each
// gradient becomes ready in its slot; when a bucket is full and all buckets before it are launched, its all-reduce
// starts while backward continues. At the end the round waits for all buckets, and the flags in them show what
// happened on every rank.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/reducer/buckets.h>
#include <brigade/dist/reducer/observer.h>
#include <brigade/dist/reducer/past.h>
#include <brigade/dist/reducer/transport.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

class Accumulation;
class LaunchOrder;

// static_graph: the parameters that the first backward used.
struct RecordedGraph {
  std::vector<uint8_t> used;  // per parameter; empty before that backward
  Place where;                // of that backward
};

class Round {
 public:
  struct Start {
    uint64_t number = 0;                   // of the reduced backward, from 1
    SourceLocation where;                  // the call
    const autograd::Plan* plan = nullptr;  // null if this rank has no sound backward of its own
    SourceLocation forward;                // the call of its forward; no line if unknown
    std::vector<uint8_t> planned;          // per parameter: it will be reached, and is averaged here
    // Per parameter; empty: none. Another reducer's slot gets the gradient; the flag is set as if this reducer's did.
    std::vector<OfOthers> of_others = {};
    bool absent = false;    // reaches no parameter of this reducer, and nothing was accumulated
    bool joined = false;    // a shadow: this rank has no data left
    bool failed = false;    // this rank's backward failed
    bool held = false;      // nothing is launched before finish()
    bool changed = false;   // static_graph: the used set differs from the recorded one
    uint64_t averages = 0;  // which shared parameters it averages (SharedLeaves::averages)
    int64_t rows = 0;       // samples in this rank's batch, 0 when not known

    bool is_reached_elsewhere(uint32_t parameter) const {
      return !of_others.empty() && of_others[parameter] == OfOthers::Reached;
    }
    // Whether the backward will reach any parameter, whichever reducer averages it.
    bool reaches_any() const {
      return std::ranges::find(planned, 1) != planned.end() ||
             std::ranges::find(of_others, OfOthers::Reached) != of_others.end();
    }
    // Whether this rank reaches something, or has accumulated something, and its backward has not failed.
    bool takes_part() const noexcept { return !absent && !failed; }
  };
  // The arguments other than `start` must outlive this object.
  Round(const ReducerSetup& setup, Buckets& buckets, Accumulation& accumulation, const RecordedGraph& recorded,
        Start start);
  ~Round();
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  // Orders this round among the others of the same backward, until it ends. Nothing is then sent before the first
  // gradient.
  void take_turns(LaunchOrder& order, uint64_t forward);
  // Fills the slots of parameters that the backward will not reach. May throw.
  void begin();
  void on_grad_ready(uint32_t parameter, bool defined);
  // Called when this rank's backward has failed: the remaining buckets are sent with a mark.
  void fail() noexcept;
  // Sends the buckets that are full.
  void send_ready();
  bool has_sent_all() const noexcept;
  // Called when all nodes have run: sends all buckets, or only the first if no rank reaches anything.
  void send_rest();
  // Called after that: waits for all buckets. Throws what the group throws; the contents of the buckets are then
  // unusable.
  void finish();

  // After finish(): whether the gradients cannot be trusted.
  bool is_error() const;
  // Puts the gradients, which are final, in place.
  void settle_all();

  uint64_t number() const noexcept { return start_.number; }
  SourceLocation where() const noexcept { return start_.where; }
  const Start& start() const noexcept { return start_; }
  const Traffic& traffic() const noexcept { return transport_.traffic(); }
  const ReducerSetup& setup() const noexcept { return setup_; }
  const Accumulation& accumulation() const noexcept { return accumulation_; }
  const Buckets& buckets() const noexcept { return buckets_; }
  // Whether it is captured into a graph: nothing may wait for the device.
  bool is_captured() const noexcept { return captured_; }
  // Whether the parameter is used in this backward or since the last reduction.
  bool uses(uint32_t parameter) const;
  const RecordedGraph& recorded() const noexcept { return recorded_; }
  const Outcome& outcome() const noexcept { return outcome_; }
  std::vector<uint32_t>& ready_order() noexcept { return ready_order_; }
  Moment moment() const;
  std::string describe(uint32_t bucket) const { return transport_.describe(bucket); }
  // Returns every rank's text; `about`: the subject of the exchange.
  std::vector<std::string> exchange(const std::string& text, const char* about, Phase phase = Phase::Backward) const;

 private:
  // The progress of a bucket.
  struct Progress {
    uint32_t pending = 0;  // gradients still missing
    bool completed = false;
    bool settled = false;
    bool received = false;
    bool to_judge = false;        // later, on a device: the observers are asked when it is idle
    std::vector<Tensor> to_copy;  // on a device: gradients per slot that are copied in when it is launched
  };

  // round.cpp
  void prepare_unplanned(uint32_t parameter);
  void take_gradient(uint32_t parameter);
  void measure(uint32_t parameter) const {
    if (setup_.options.meter) setup_.options.meter->measure(*this, parameter);
  }
  // static_graph: compares the use of the parameter with the first backward's.
  void compare_with_recorded(uint32_t parameter);
  void launch(uint32_t index);
  void fill_words(uint32_t index);
  // outcome.cpp
  void poll();
  void send_waiting_words(uint32_t index);
  void receive(uint32_t index);
  void complete(uint32_t index);
  void hand_over(uint32_t end);
  void read_words(uint32_t index);
  bool nobody_is_present();
  // Asks the observers.
  void judge(uint32_t index);
  bool is_sound(std::span<const uint32_t> parameters) const;
  void settle(uint32_t index);
  void settle_parameter(uint32_t parameter, std::vector<Tensor>& to_fill);

  const ReducerSetup& setup_;
  Buckets& buckets_;
  Accumulation& accumulation_;
  const RecordedGraph& recorded_;
  LaunchOrder* order_ = nullptr;
  Start start_;
  Transport transport_;
  bool captured_;
  std::vector<Progress> progress_;
  bool reaches_nothing_ = false;  // on all ranks
  // The next bucket to launch, to complete, and to hand to the follower.
  struct {
    uint32_t launch = 0, complete = 0, hand_over = 0;
  } next_;
  Outcome outcome_;
  // Saved gradients of parameters that may turn out unused on all ranks.
  std::vector<std::pair<uint32_t, Tensor>> stale_;
  std::vector<uint32_t> ready_order_;
};

}  // namespace brigade::dist
