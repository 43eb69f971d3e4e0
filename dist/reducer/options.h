// The options of a reducer, and the state that its parts share.
#pragma once

#include <brigade/dist/buckets/bucket.h>
#include <brigade/dist/buckets/words.h>
#include <brigade/dist/comm_hooks/comm_hook.h>
#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/reducer/meter.h>
#include <brigade/dist/reducer/observer.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace brigade::dist {

struct ReducerOptions {
  // false (strict): a parameter that is not ready on every rank is an error at the end of the same backward. true: a
  // parameter that some ranks did not use is averaged with zeros; one that no rank used keeps its gradient.
  bool find_unused_parameters = false;
  // Expect the set of parameters that the first backward used from then on; a different set is an error.
  bool static_graph = false;
  // Gradients live in the buckets. false: they have their own memory and are copied in and out.
  bool gradient_as_bucket_view = true;
  BucketLimits limits;
  // When a strict error is raised: at the end of the backward that caused it, or, as in PyTorch, in the next forward.
  // In the latter case several backwards may reach the parameters together, like those of two losses over disjoint
  // parameters: there is no error once each parameter was reached. A gradient that is not the mean is an error at once.
  enum class ReportAt : uint8_t { Backward, NextForward };
  ReportAt report_at = ReportAt::Backward;
  // Measures the gradients on their way. Null: nothing does.
  std::shared_ptr<GradientMeter> meter = {};
  // The name of the module in messages.
  std::string module_name = "module";
  Owner owner = {Name("DDP(module)"), 1};  // identifies this wrapper, the same on every rank
  // Positions of parameters that are reduced in separate buckets, after all others and not before `trigger` is ready.
  std::vector<uint32_t> delayed = {};
  std::optional<uint32_t> trigger = {};
  // Returns the current parameters of the module, to explain one that was replaced. May be empty.
  std::function<std::vector<NamedParameter>()> current_parameters = {};
  // Returns the current WrappedModule::paths. May be empty.
  std::function<std::unordered_map<const void*, std::string>()> module_paths = {};
  // The same kinds in the same order on every rank.
  std::vector<std::shared_ptr<ReducerObserver>> observers = {};
};

// Moves parameters while backward runs. All callbacks are optional.
struct BucketFollower {
  // Called before anything is sent; may throw. `planned`, per parameter: this backward will reach it.
  std::function<void(std::span<const uint8_t> planned)> begins = {};
  // Called when a bucket is reduced and sound, with the positions of its parameters. Calls come in bucket order,
  // possibly while backward still runs.
  std::function<void(std::span<const uint32_t> parameters, SourceLocation backward)> reduced = {};
  // `sound`: the gradients of all buckets are in place. Otherwise they are about to be cleared, and backward is about
  // to throw.
  std::function<void(bool sound)> ended = {};
  // The group has failed, so this rank cannot know how far the others have come. Must not throw.
  std::function<void()> broken = {};
  // Whether `reduced` posts collectives. It is then called at the same point among the reducer's own collectives on
  // every rank: when the next bucket but one is launched, or after the last. It then gets only parameters that the
  // backward has to reach (Reducer::expect), and is not called for a round that stays local.
  bool posts = false;
  // If set and expired, the follower may be replaced. Not set: the follower stays as long as the reducer lives.
  std::optional<std::weak_ptr<const void>> owner = {};
};

// While join() runs: ranks without data take part in the backwards of the others.
class JoinPolicy {
 public:
  virtual ~JoinPolicy() = default;
  // Announces a backward to the ranks without data, before anything is sent.
  virtual void before_round(SourceLocation where) = 0;
  // Whether the buckets of the coming backward wait until all nodes have run; it is announced then.
  virtual bool waits_for_end() = 0;
  // Whether to divide by the number of ranks that still have data instead of all ranks.
  virtual bool divides_by_participants() const = 0;
};

// Which reducer averages the gradient of a parameter (shared_leaves.h).
enum class Sharing : uint8_t {
  None,  // no other reducer manages it
  Here,
  Elsewhere,  // another reducer, in this backward or in the latest of all of them
};
// Whether another reducer averages this parameter in the current backward.
enum class OfOthers : uint8_t { No, Unreached, Reached };

// State that the parts of a reducer read. The reducer writes it, between backwards.
struct ReducerSetup {
  std::vector<NamedParameter> parameters;
  ProcessGroupPtr group;
  ReducerOptions options;
  CommHookPtr hook = {};
  std::vector<uint8_t> expected = {};  // per parameter: see Reducer::expect
  // Per parameter: reduced without error by a backward whose error is deferred (ReportAt::NextForward).
  std::vector<uint8_t> covered = {};
  // Per parameter: one of those backwards has reached it on this rank.
  std::vector<uint8_t> reached = {};
  std::vector<Sharing> sharing = {};  // per parameter
  JoinPolicy* join = nullptr;
  BucketFollower follower = {};
  std::vector<ReducerObserver*> hearing = {};  // the observers whose on_ready() is called
  std::vector<SentWord*> words = {};           // of the observers
  std::vector<WordKind> registered = {};       // words of a payload: of the meter, then of the observers

  // Collects these.
  void register_observers() {
    notify([&](ReducerObserver& each) {
      std::ranges::copy(each.words(), std::back_inserter(words));
      if (each.hears_gradients()) hearing.push_back(&each);
    });
    if (options.meter) registered = options.meter->words();
    for (const SentWord* const each : words)
      registered.push_back(each->kind());
  }
  // The position of an observer's word among the registered ones.
  size_t position_of(size_t word) const noexcept { return registered.size() - words.size() + word; }

  size_t count() const noexcept { return parameters.size(); }
  bool is_elsewhere(uint32_t parameter) const { return sharing[parameter] == Sharing::Elsewhere; }
  // Calls f for each observer, in order.
  template <class F>
  void notify(F&& f) const {
    for (const std::shared_ptr<ReducerObserver>& each : options.observers)
      f(*each);
  }
  // Whether a strict backward has to reach the parameter.
  bool has_to_be_ready(uint32_t parameter) const { return expected[parameter] && !covered[parameter]; }
  std::string title() const { return in_words(options.owner); }
  // The topic of a collective of this wrapper.
  Topic topic(Phase phase, std::string_view purpose) const { return {phase, Name(purpose), options.owner}; }
};

}  // namespace brigade::dist
