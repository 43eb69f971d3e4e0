// A rule for each pair of things that ranks can be in; the first that fits says what is left.
#include <brigade/dist/diagnosis/mismatch.h>

#include <brigade/core/place.h>
#include <brigade/dist/diagnosis/coalesced.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

namespace brigade::dist {

namespace {

constexpr std::string_view kUnderNoSync = " under no_sync not reduced";
constexpr std::string_view kAfterForward = ", after the forward of ";
constexpr std::string_view kUnderNoGrad = " under no_grad";
constexpr std::string_view kOfForward = ", of the forward at ";
constexpr std::string_view kAfterBackward = ", after the backward at ";
constexpr std::string_view kReachedNothing = " reached nothing of ";
constexpr std::string_view kAveraging = "model averaging";
constexpr std::string_view kByHook = ", by hook ";
constexpr std::string_view kZero = "ZeroRedundancyOptimizer: parameters";  // a new one compares them
constexpr std::string_view kJoin = "join: ";
constexpr std::string_view kEndOfJoin = "join: who had data to the end";
constexpr std::string_view kInBackward = "a backward of ";
constexpr std::string_view kRefused = "refused: its loss has no history";
constexpr std::string_view kReport = "error report of ";
constexpr std::string_view kStep = "agreement on a step of ";

// What a collective belongs to, by its description.
enum class Part : uint8_t { Own, Construction, Buffers, Layer, Backward, Step, Other };

Part part_of(const CollectiveInfo& info) {
  static constexpr std::pair<std::string_view, Part> kParts[] = {{"model check of ", Part::Construction},
                                                                 {"parameters and buffers of ", Part::Construction},
                                                                 {"buffers of ", Part::Buffers},
                                                                 {"SyncBatchNorm", Part::Layer},
                                                                 {"bucket ", Part::Backward},
                                                                 {"flags of bucket ", Part::Backward},
                                                                 {"ready order of ", Part::Backward},
                                                                 {"batch sizes of ", Part::Backward},
                                                                 {"factors of the losses of ", Part::Backward},
                                                                 {"non-finite gradients of ", Part::Backward},
                                                                 {"numbers of micro-batches of ", Part::Backward},
                                                                 {"ready times of ", Part::Backward},
                                                                 {"sizes of gradients of ", Part::Backward},
                                                                 {kStep, Part::Step},
                                                                 {kJoin, Part::Other},
                                                                 {kReport, Part::Other},
                                                                 {kAveraging, Part::Other},
                                                                 {"explain_with_peers of ", Part::Other}};
  if (info.description == kZero) return Part::Construction;
  for (const auto& [prefix, part] : kParts) {
    if (info.description.starts_with(prefix)) return part;
  }
  return Part::Own;
}

// "bucket 0 of DDP(Net)" and "fp16_compress_hook" of "flags of bucket 0 of DDP(Net), by hook fp16_compress_hook".
std::pair<std::string_view, std::string_view> split_at_hook(const CollectiveInfo& info) {
  std::string_view text = info.description;
  if (text.starts_with("flags of ")) text.remove_prefix(std::string_view("flags of ").size());
  const size_t at = text.find(kByHook);
  return at == text.npos ? std::pair(text, std::string_view())
                         : std::pair(text.substr(0, at), text.substr(at + kByHook.size()));
}

std::string_view wrapper_of(const CollectiveInfo& info) {
  const std::string_view bucket = split_at_hook(info).first;
  const size_t at = bucket.find(" of ");
  return at == bucket.npos ? bucket : bucket.substr(at + 4);
}

// "the barrier at train.cpp:12"
std::string short_words(const CollectiveInfo& info) {
  const std::string what = info.description.empty() ? info.kind : fmt::format("{} \"{}\"", info.kind, info.description);
  return info.where ? fmt::format("{} at {}", what, to_string(info.where)) : what;
}

// One of the ranks that differ, and how texts call it.
struct Side {
  const CollectiveInfo* info;
  Part part;
  size_t rank;       // position
  std::string name;  // "rank 1"
};
struct Sides {
  Side first, second;

  bool both(Part part) const { return first.part == part && second.part == part; }
  // The one that is in `part` first; nothing when both are, or none.
  std::optional<Sides> alone_in(Part part) const {
    if ((first.part == part) == (second.part == part)) return std::nullopt;
    return first.part == part ? *this : Sides{second, first};
  }
};

using Found = std::optional<MismatchReason>;
Found advise(std::string text) { return MismatchReason{"", std::move(text), {}}; }

// One call with other values.
Found same_call(const Mismatch&, const Sides& sides) {
  const CollectiveInfo& a = *sides.first.info;
  const CollectiveInfo& b = *sides.second.info;
  if (a.kind != b.kind || a.description != b.description || sides.both(Part::Backward)) return std::nullopt;
  if (a.dtype != b.dtype) return advise("the tensors have different dtypes: convert on every rank alike");
  if (a.op != b.op) return advise("the operations differ: give the same one on every rank");
  if (a.root != b.root) return advise("the roots differ: name the same one on every rank");
  return advise(
      "the tensors have different sizes: exchange as many values on every rank (gather the sizes first, or fill up), "
      "and call in the same order");
}

// The ranks' own words of the group that they want to make.
Found other_groups(const Mismatch&, const Sides& sides) {
  if (sides.first.info->kind != "new_group" || sides.second.info->kind != "new_group") return std::nullopt;
  return advise("give the same list of ranks and time-out on every rank of the group, members or not");
}

// Issued together with others, or with other ones.
Found other_parts(const Mismatch&, const Sides& sides) {
  std::optional<std::string> how =
      how_parts_differ(*sides.first.info, sides.first.name, *sides.second.info, sides.second.name);
  if (!how) return std::nullopt;
  return MismatchReason{
      *std::move(how), "call the same collectives, in the same order, in the coalescing managers of all ranks", {}};
}

Found other_hooks(const Mismatch&, const Sides& sides) {
  if (!sides.both(Part::Backward)) return std::nullopt;
  const auto [bucket, hook] = split_at_hook(*sides.first.info);
  const auto [other_bucket, other_hook] = split_at_hook(*sides.second.info);
  if (bucket != other_bucket) return std::nullopt;
  if (hook == other_hook) {
    if (hook.empty() || sides.first.info->description != sides.second.info->description ||
        sides.first.info->iteration != sides.second.info->iteration)
      return std::nullopt;
    return advise(fmt::format("register the communication hook {} with the same options on every rank", hook));
  }
  const auto way = [](std::string_view name) {
    return name.empty() ? std::string("without a communication hook")
                        : fmt::format("by the communication hook {}", name);
  };
  return MismatchReason{
      fmt::format("{} reduces {}, {} {}", sides.first.name, way(hook), sides.second.name, way(other_hook)),
      "register the same communication hook on every rank",
      {}};
}

Found constructions(const Mismatch&, const Sides& sides) {
  if (sides.both(Part::Construction))
    return advise("the ranks make different wrappers here: make the same ones, in the same order, on every rank");
  const auto found = sides.alone_in(Part::Construction);
  if (!found) return std::nullopt;
  const bool is_zero = found->first.info->description == kZero;
  return advise(
      fmt::format("{} makes a {} here that {} does not make, or not yet: make the same ones at the same "
                  "place of the program on every rank",
                  found->first.name, is_zero ? "ZeroRedundancyOptimizer" : "wrapper", found->second.name));
}

// "" where it is not known.
const std::string& activity_of(const Mismatch& mismatch, const Side& side) {
  static const std::string unknown;
  return mismatch.activities.size() == mismatch.by_rank.size() ? mismatch.activities[side.rank] : unknown;
}

Found step_under_no_sync(const Mismatch& mismatch, const Sides& sides) {
  const auto found = sides.alone_in(Part::Step);
  if (!found) return std::nullopt;
  const auto& [stepping, other] = *found;
  const std::string& activity = activity_of(mismatch, stepping);
  if (!activity.ends_with(kUnderNoSync)) return std::nullopt;
  return MismatchReason{fmt::format("{} is in {}, and {} is not", stepping.name, activity, other.name),
                        fmt::format("run the last backward before a step outside no_sync on {} too", stepping.name),
                        {static_cast<int>(stepping.rank)}};
}

// Whether it says `words`, and not those of a longer line number or title.
bool says(const std::string& activity, const std::string& words) {
  const size_t at = activity.find(words);
  if (at == activity.npos) return false;
  const size_t end = at + words.size();
  return end == activity.size() || activity[end] == ',' || activity[end] == ';' || activity[end] == ' ';
}

// `other` reduces a backward of a wrapper, or copies its buffers. The same forward was not recorded on `side`, so that no
// backward of it can come there.
Found forward_under_no_grad(const std::string& activity, const std::string& others_activity, const Side& side,
                            const Side& other) {
  const std::string wrapper(wrapper_of(*other.info));
  const std::string begin = fmt::format("{}{} at ", kAfterForward, wrapper);
  const size_t at = activity.find(begin);
  if (at == activity.npos) return std::nullopt;
  const std::string rest = activity.substr(at + begin.size(), activity.find(", ", at + 1) - at - begin.size());
  const size_t guard = rest.find(kUnderNoGrad);
  if (guard == rest.npos) return std::nullopt;
  const std::string forward = rest.substr(0, guard);
  const bool is_the_same = other.part == Part::Buffers
                               ? to_string(other.info->where) == forward
                               : says(others_activity, fmt::format("of {}{}{}", wrapper, kOfForward, forward));
  if (!is_the_same) return std::nullopt;
  return MismatchReason{
      fmt::format("the forward of {} at {} ran{} on {} and not on {}, so that only {} comes to a backward "
                  "of it",
                  wrapper, forward, rest.substr(guard), side.name, other.name, other.name),
      "run that forward under the NoGradGuard on every rank or on none",
      {static_cast<int>(side.rank)}};
}

// Whether the backward that `other` is in has reached nothing of its wrapper on the rank of that activity.
bool passes_by(const std::string& activity, const Side& other) {
  return other.part == Part::Backward &&
         says(activity, fmt::format("{}{}{}{}", kAfterBackward, to_string(other.info->where), kReachedNothing,
                                    wrapper_of(*other.info)));
}

// The same backward reaches the wrapper on `other` alone. Where each is in the backward of a wrapper that the other has
// passed by, they are in other backwards of one line.
Found backward_reaches_nothing(const std::string& activity, const std::string& others_activity, const Side& side,
                               const Side& other) {
  if (!passes_by(activity, other) || passes_by(others_activity, side)) return std::nullopt;
  const std::string wrapper(wrapper_of(*other.info));
  const std::string backward = to_string(other.info->where);
  return MismatchReason{
      fmt::format("the backward at {} reaches nothing of {} on {}, and does on {}", backward, wrapper, side.name,
                  other.name),
      fmt::format(
          "look for a detach(), a NoGradGuard or a value that is read as a number between the results of {} and "
          "that loss on {}; a loss that leaves the wrapper out does so on every rank",
          wrapper, side.name),
      {static_cast<int>(side.rank)}};
}

// A rank goes on without a wrapper, and has said why.
Found missed_wrapper(const Mismatch& mismatch, const Sides& sides) {
  for (const auto& [side, other] : {std::pair(sides.first, sides.second), std::pair(sides.second, sides.first)}) {
    if (other.part != Part::Backward && other.part != Part::Buffers) continue;
    // Elsewhere it does not train any more.
    const bool trains = side.part == Part::Backward || side.part == Part::Buffers || side.part == Part::Step;
    if (!trains && !side.info->description.starts_with(kReport)) continue;
    const std::string& activity = activity_of(mismatch, side);
    const std::string& of_other = activity_of(mismatch, other);
    Found found = forward_under_no_grad(activity, of_other, side, other);
    if (!found) found = backward_reaches_nothing(activity, of_other, side, other);
    if (found) return found;
  }
  return std::nullopt;
}

// What it reduces are zeros, for the others to learn of it; where these exchange something before, they do not.
Found refused_backward(const Mismatch& mismatch, const Sides& sides) {
  for (const Side& side : {sides.first, sides.second}) {
    if (side.part != Part::Backward || activity_of(mismatch, side).find(kRefused) == std::string::npos) continue;
    return MismatchReason{fmt::format("the backward of {} was {}", side.name, kRefused),
                          fmt::format("repair the error that {} reports", side.name),
                          {static_cast<int>(side.rank)}};
  }
  return std::nullopt;
}

// "DDP(Net)" of "agreement on a step of DDP(Net)".
std::string_view stepped_by(const CollectiveInfo& step) {
  return std::string_view(step.description).substr(std::min(kStep.size(), step.description.size()));
}

// How many reduced backwards came before each step at this line, and how many since the latest.
struct BackwardsPerStep {
  std::set<size_t> before;
  size_t since = 0;
};
BackwardsPerStep count_backwards(const Mismatch& mismatch, const CollectiveInfo& step) {
  const std::string bucket = fmt::format("bucket 0 of {}", stepped_by(step));
  BackwardsPerStep found;
  // What was before the oldest that is known may have been a backward.
  bool whole = mismatch.before.empty() || mismatch.before.front().sequence <= 1;
  for (const CollectiveInfo& each : mismatch.before) {
    if (each.description == step.description && each.where == step.where) {
      if (whole) found.before.insert(found.since);
      whole = true;
      found.since = 0;
    } else if (split_at_hook(each).first == bucket && !each.description.starts_with("flags of ")) {
      ++found.since;
    }
  }
  return found;
}

// A rank is at a step, another goes on without.
Found step_or_not(const Mismatch& mismatch, const Sides& sides) {
  const auto found = sides.alone_in(Part::Step);
  if (!found || found->second.part == Part::Own || found->second.part == Part::Other) return std::nullopt;
  const auto& [stepping, other] = *found;
  const BackwardsPerStep backwards = count_backwards(mismatch, *stepping.info);
  const bool same_wrapper = other.part != Part::Backward || stepped_by(*stepping.info) == wrapper_of(*other.info);
  if (backwards.before.size() == 1 && same_wrapper) {
    const size_t usual = *backwards.before.begin();
    const auto in_words = [](size_t count) {
      if (count < 2) return std::string(count == 0 ? "no reduced backward" : "one reduced backward");
      return fmt::format("{} reduced backwards", count);
    };
    if (backwards.since == usual) {
      return MismatchReason{
          fmt::format(
              "{} goes on without the step that {} takes, or runs more before it: so far all ranks stepped after {}",
              other.name, stepping.name, in_words(usual)),
          "decide on every rank alike whether to step, and accumulate over as many backwards",
          {static_cast<int>(other.rank)}};
    }
    if (backwards.since < usual) {
      return MismatchReason{
          fmt::format("{} steps after {}, so far all ranks did after {}: it left out a backward, or steps before it",
                      stepping.name, in_words(backwards.since), in_words(usual)),
          "run as many backwards before a step on every rank",
          {static_cast<int>(stepping.rank)}};
    }
  }
  return advise(
      fmt::format("either {} left out a step, or {} left out a backward: decide on every rank alike whether "
                  "to step, and accumulate over as many backwards, the same of them under no_sync",
                  other.name, stepping.name));
}

// Optimizers that move parameters of one wrapper each.
Found steps_of_wrappers(const Mismatch&, const Sides& sides) {
  if (!sides.both(Part::Step)) return std::nullopt;
  return advise(
      fmt::format("{} steps an optimizer of {}, {} one of {}: step the same optimizers in the same order on every rank",
                  sides.first.name, stepped_by(*sides.first.info), sides.second.name, stepped_by(*sides.second.info)));
}

// Whether all ranks ran the layer between each two of their reduced backwards, and not since the
// latest.
bool misses_layer(const Mismatch& mismatch, const CollectiveInfo& layer) {
  bool runs = false;
  size_t times = 0;
  for (const CollectiveInfo& each : mismatch.before) {
    if (each.matches(layer)) {
      runs = true;
    } else if (each.description.starts_with("bucket 0 of ")) {
      if (!runs) return false;
      runs = false;
      ++times;
    }
  }
  return !runs && times > 0;
}

Found layer(const Mismatch& mismatch, const Sides& sides) {
  if (sides.both(Part::Layer)) return advise("run the same layers in the same order on every rank");
  const auto found = sides.alone_in(Part::Layer);
  if (!found) return std::nullopt;
  const auto& [in_layer, other] = *found;
  if (other.part == Part::Backward && misses_layer(mismatch, *in_layer.info)) {
    return MismatchReason{fmt::format("{} came to its backward without the layer, which all ranks ran before each "
                                      "earlier one",
                                      other.name),
                          "run the same layers on every rank",
                          {static_cast<int>(other.rank)}};
  }
  return advise(
      fmt::format("{} runs a layer in training mode that {} does not run here: convert the module on every "
                  "rank, run the same layers and as many batches, and evaluate in eval()",
                  in_layer.name, other.name));
}

Found backwards_of_wrappers(const Mismatch&, const Sides& sides) {
  if (!sides.both(Part::Backward)) return std::nullopt;
  return advise("run the backwards of the wrappers in the same order on every rank, and all of them");
}

// All ranks have the same flags of who is used, and only one finds a fault in them.
Found reports(const Mismatch&, const Sides& sides) {
  const bool first = sides.first.info->description.starts_with(kReport);
  if (first == sides.second.info->description.starts_with(kReport)) return std::nullopt;
  const auto& [reporting, other] = first ? sides : Sides{sides.second, sides.first};
  return advise(fmt::format(
      "the backward of {} is wrong by what {} expects of it, and right by what {} does: call expect(), with "
      "the same parameters, round the same backwards on every rank",
      reporting.info->description.substr(kReport.size()), reporting.name, other.name));
}

// Whether the latest that all ranks did of a join was not its end.
bool are_in_join(const Mismatch& mismatch) {
  const auto latest = std::find_if(mismatch.before.rbegin(), mismatch.before.rend(),
                                   [](const CollectiveInfo& each) { return each.description.starts_with(kJoin); });
  return latest != mismatch.before.rend() && latest->description != kEndOfJoin;
}

// A rank asks the others for what comes next in a join.
Found joins(const Mismatch& mismatch, const Sides& sides) {
  const bool first = sides.first.info->description.starts_with(kJoin);
  if (first == sides.second.info->description.starts_with(kJoin)) return std::nullopt;
  const auto& [in_join, other] = first ? sides : Sides{sides.second, sides.first};
  if (other.part == Part::Own && are_in_join(mismatch)) {
    return advise(
        fmt::format("{} calls {} inside the join, where a rank without data takes part in what the joined wrappers do "
                    "and in nothing else: call it after finish(), or in a Joinable of your own that joins too",
                    other.name, short_words(*other.info)));
  }
  return advise(
      fmt::format("{} is in a join and {} is not: open Join on every rank before the loop, over the same wrappers, and "
                  "finish() it after the loop",
                  in_join.name, other.name));
}

// Parameters instead of gradients, every so often.
Found averaging(const Mismatch&, const Sides& sides) {
  const bool first = sides.first.info->description == kAveraging;
  if (first == (sides.second.info->description == kAveraging)) return std::nullopt;
  const auto& [averages, other] = first ? sides : Sides{sides.second, sides.first};
  return advise(fmt::format(
      "{} averages the models here and {} does not: give the averagers the same period and warm-up on every "
      "rank, and call them after each step",
      averages.name, other.name));
}

// A call of the program itself.
Found own_call(const Mismatch& mismatch, const Sides& sides) {
  const auto found = sides.alone_in(Part::Own);
  if (!found) return std::nullopt;
  const auto& [own, other] = *found;
  // In a function of the program's own, or a hook: the call comes between the plan of a backward and its end.
  if (activity_of(mismatch, own).starts_with(kInBackward) && other.part == Part::Backward) {
    return advise(fmt::format(
        "{} calls {} in its backward, to which that of {} does not come: let the loss reach the same functions "
        "on every rank (look for a detach(), a NoGradGuard or a branch), and register the same gradient hooks",
        own.name, short_words(*own.info), other.name));
  }
  const bool was_called = std::any_of(mismatch.before.begin(), mismatch.before.end(),
                                      [&](const CollectiveInfo& each) { return each.matches(*own.info); });
  if (was_called) {
    return advise(
        fmt::format("{} calls {}, as all ranks have done together before: either they are not at the same "
                    "place of their loops (another number of batches), or the condition around the call "
                    "differs",
                    own.name, short_words(*own.info)));
  }
  return advise(
      fmt::format("either {} never calls {} (it stands under a condition), or {} comes to it earlier (fewer "
                  "batches): call it on every rank, and give every rank as many batches, or use Join",
                  other.name, short_words(*own.info), own.name));
}

Found forward_or_not(const Mismatch&, const Sides& sides) {
  const auto found = sides.alone_in(Part::Buffers);
  if (!found) return std::nullopt;
  return advise(
      fmt::format("{} begins a forward that {} does not: either it evaluates through the wrapper (do so under "
                  "NoGradGuard, or through the module), or it left out a backward, or the ranks have "
                  "different numbers of batches",
                  found->first.name, found->second.name));
}

}  // namespace

MismatchReason reason_for(const Mismatch& mismatch, size_t usual, size_t odd, const RankNames& names) {
  const auto side = [&](size_t rank) {
    const CollectiveInfo& info = mismatch.by_rank[rank];
    return Side{&info, part_of(info), rank, fmt::format("rank {}", names(static_cast<int>(rank)))};
  };
  const Sides sides{side(std::min(usual, odd)), side(std::max(usual, odd))};
  for (const auto rule : {&other_groups, &other_parts, &same_call, &other_hooks, &constructions, &refused_backward,
                          &missed_wrapper, &reports, &joins, &averaging, &step_under_no_sync, &step_or_not,
                          &steps_of_wrappers, &layer, &backwards_of_wrappers, &own_call, &forward_or_not}) {
    if (Found found = rule(mismatch, sides)) return *std::move(found);
  }
  return {"", "call the same collectives in the same order on every rank", {}};
}

std::string step_in_words(const std::string& optimizer, uint32_t local_backwards) {
  if (local_backwards == 0) return "a step of " + optimizer;
  return fmt::format("a step of {}, with {} {}{}", optimizer, local_backwards,
                     local_backwards == 1 ? "backward" : "backwards", kUnderNoSync);
}

std::string backward_in_words(const std::string& title, SourceLocation forward) {
  return forward.line() == 0 ? "of " + title : fmt::format("of {}{}{}", title, kOfForward, to_string(forward));
}

std::string refused_backward_in_words(const std::string& title) {
  return fmt::format("a backward of {}, {}", title, kRefused);
}

std::string missed_forward_in_words(const std::string& title, SourceLocation forward, SourceLocation opened) {
  std::string text = fmt::format("{}{} at {}{}", kAfterForward, title, to_string(forward), kUnderNoGrad);
  if (opened.line() != 0 && !is_in_standard_library(opened)) text += " from " + to_string(opened);
  return text;
}

std::string missed_backward_in_words(const std::string& title, SourceLocation backward) {
  return fmt::format("{}{}{}{}", kAfterBackward, to_string(backward), kReachedNothing, title);
}

}  // namespace brigade::dist
