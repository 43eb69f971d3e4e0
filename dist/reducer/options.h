// What a reducer is made with, and what its parts share.
#pragma once

#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/reducer/bucket.h>
#include <brigade/dist/reducer/comm_hook.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace brigade::dist {

struct ReducerOptions {
  // false (strict): a parameter that is not ready on every rank is an error at the end of the same
  // backward. true: a parameter that some ranks did not use is averaged with zeros; one that no
  // rank used keeps its gradient as it was.
  bool find_unused_parameters = false;
  // The set that the first backward used is the one to expect from then on; another one is an
  // error.
  bool static_graph = false;
  // Gradients live in the buckets. false: they live in memory of their own and are copied in and
  // out.
  bool gradient_as_bucket_view = true;
  BucketLimits limits;
  // When a strict error is raised: at the end of the backward that caused it, or, as PyTorch does,
  // in the next forward. Then several backwards may reach the parameters together, as those of two
  // losses over disjoint parameters do: there is no error once each was reached.
  enum class ReportAt : uint8_t { Backward, NextForward };
  ReportAt report_at = ReportAt::Backward;
  // Look at the numbers as well: non-finite gradients, a rank of another size, a hook that does not
  // average, a late rank.
  bool diagnosis = true;
  // What the module is called in messages.
  std::string module_name = "module";
  Owner owner = {Name("DDP(module)"), 1};  // this one wrapper, the same on every rank
  // Positions of parameters that are reduced in buckets of their own, after all others, and not
  // before `trigger` is ready.
  std::vector<uint32_t> delayed = {};
  std::optional<uint32_t> trigger = {};
  // The parameters of the module as they are now: explains one that was replaced. May be empty.
  std::function<std::vector<NamedParameter>()> current_parameters = {};
  // WrappedModule::paths as they are now. May be empty.
  std::function<std::unordered_map<const void*, std::string>()> module_paths = {};
};

// Who moves parameters while backward runs. All calls are optional.
struct BucketFollower {
  // `planned`, per parameter: this backward will reach it. Before anything is sent; may throw.
  std::function<void(std::span<const uint8_t> planned)> begins = {};
  // A bucket is reduced and sound: the positions of its parameters. In bucket order, while backward
  // may still run.
  std::function<void(std::span<const uint32_t> parameters, SourceLocation backward)> reduced = {};
  // The gradients of all buckets are at their places; or, not `sound`, they are about to be cleared
  // and backward to throw.
  std::function<void(bool sound)> ended = {};
  // The group has failed, so that this rank cannot know how far the others have come. Must not throw.
  std::function<void()> broken = {};
  // `reduced` posts collectives. Then it is called at the same place among the reducer's own on every
  // rank: when the next bucket but one is launched, or after the last. It hears of the parameters
  // only that the backward has to reach (Reducer::expect), and not of a round that stays local.
  bool posts = false;
  // If set and expired, the follower may be replaced. Not set: the follower stays as long as the reducer lives.
  std::optional<std::weak_ptr<const void>> owner = {};
};

// Who averages the gradient of a parameter (shared_leaves.h).
enum class Sharing : uint8_t {
  None,  // no other reducer manages it
  Here,
  Elsewhere,  // another reducer, in this backward or in the latest of all of them
};
// Of a parameter in one backward: whether another reducer averages it there.
enum class OfOthers : uint8_t { No, Unreached, Reached };

// What the parts of a reducer read. The reducer writes it, between backwards.
struct ReducerSetup {
  std::vector<NamedParameter> parameters;
  ProcessGroupPtr group;
  ReducerOptions options;
  CommHookPtr hook = {};
  std::vector<uint8_t> expected = {};  // per parameter: see Reducer::expect
  // Per parameter: reduced soundly by a backward whose error is kept back (ReportAt::NextForward).
  std::vector<uint8_t> covered = {};
  // Per parameter: one of those backwards has reached it on this rank.
  std::vector<uint8_t> reached = {};
  std::vector<Sharing> sharing = {};    // per parameter
  bool divide_by_participants = false;  // see Reducer::divide_by_participants
  BucketFollower follower = {};

  size_t count() const noexcept { return parameters.size(); }
  bool is_elsewhere(uint32_t parameter) const { return sharing[parameter] == Sharing::Elsewhere; }
  // Whether a strict backward has to reach it.
  bool has_to_be_ready(uint32_t parameter) const { return expected[parameter] && !covered[parameter]; }
  std::string title() const { return in_words(options.owner); }
  // What a collective of the wrapper is about.
  Topic topic(Phase phase, std::string_view purpose) const { return {phase, Name(purpose), options.owner}; }
};

}  // namespace brigade::dist
