// Rules that explain mismatched collectives; the first match wins.
#include <brigade/dist/errors/collective.h>

#include <brigade/core/place.h>
#include <brigade/dist/errors/collective_info.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace brigade::dist {
namespace {

// The part of the program that a collective belongs to, for the rules below.
enum class Part : uint8_t { Own, Construction, Buffers, Layer, Backward, Step, Other };

Part part_of(const CollectiveInfo& info) {
  switch (info.topic.phase) {
    case Phase::Program:
    case Phase::Optimizer: return Part::Own;
    case Phase::Construction: return Part::Construction;
    case Phase::Buffers: return Part::Buffers;
    case Phase::Layer: return Part::Layer;
    case Phase::Backward: return Part::Backward;
    case Phase::Step: return Part::Step;
    case Phase::Report:
    case Phase::Join:
    case Phase::EndOfJoin:
    case Phase::Averaging:
    case Phase::Inspection: return Part::Other;
  }
  return Part::Other;
}

bool is_first_bucket_of(const CollectiveInfo& info, const Owner& wrapper) {
  return info.topic.phase == Phase::Backward && info.topic.index == 0 && info.topic.owner == wrapper &&
         info.topic.purpose == bucket_purpose();
}

// "the barrier at train.cpp:12"
std::string short_words(const CollectiveInfo& info) {
  const std::string words = describe(info);
  const std::string what = words.empty() ? name(info.kind) : fmt::format("{} \"{}\"", name(info.kind), words);
  return info.where ? fmt::format("{} at {}", what, to_string(info.where)) : what;
}

// One of the two ranks that differ, and its name in texts.
struct Side {
  const CollectiveInfo* info;
  Part part;
  size_t rank;       // position
  std::string name;  // "rank 1"
};
struct Sides {
  Side first, second;

  bool both(Part part) const { return first.part == part && second.part == part; }
  // Both sides, the one in `part` first; nothing if both or neither are in it.
  std::optional<Sides> alone_in(Part part) const {
    if ((first.part == part) == (second.part == part)) return std::nullopt;
    return first.part == part ? *this : Sides{second, first};
  }
};

using Found = std::optional<MismatchReason>;
Found advise(std::string why, std::string advice) { return MismatchReason{std::move(why), std::move(advice), {}}; }

// The same call with different values.
Found same_call(const Mismatch&, const Sides& sides) {
  const CollectiveInfo& a = *sides.first.info;
  const CollectiveInfo& b = *sides.second.info;
  const bool is_one_call = a.kind == b.kind && a.topic == b.topic && a.id().text == b.id().text && a.part == b.part;
  if (!is_one_call || a.parts != b.parts || (a.parts > 0 && a.part == 0) || sides.both(Part::Backward))
    return std::nullopt;
  if (a.dtype != b.dtype) return advise("the tensors have different dtypes", "convert on every rank alike");
  if (a.op != b.op) return advise("the operations differ", "give the same one on every rank");
  if (a.root != b.root) return advise("the roots differ", "name the same one on every rank");
  return advise("the tensors have different sizes, or the calls another order",
                "exchange as many values on every rank (gather the sizes first, or fill up), in the same order");
}

// Both ranks make a group, but describe it differently; or only one makes it.
Found other_groups(const Mismatch&, const Sides& sides) {
  const bool first = sides.first.info->kind == CollectiveKind::NewGroup;
  const bool second = sides.second.info->kind == CollectiveKind::NewGroup;
  if (!first && !second) return std::nullopt;
  if (first != second)
    return advise(fmt::format("{} makes a group here, and {} does not", first ? sides.first.name : sides.second.name,
                              first ? sides.second.name : sides.first.name),
                  "call new_group() on every rank, members or not");
  return advise("the ranks make a group from different lists of ranks or with other time-outs",
                "give the same list and time-out on every rank of the group, members or not");
}

// Coalesced on one rank only, or with different collectives.
Found other_parts(const Mismatch&, const Sides& sides) {
  std::optional<std::string> how =
      how_parts_differ(*sides.first.info, sides.first.name, *sides.second.info, sides.second.name);
  if (!how) return std::nullopt;
  return MismatchReason{
      *std::move(how), "call the same collectives, in the same order, in the coalescing managers of all ranks", {}};
}

Found other_hooks(const Mismatch&, const Sides& sides) {
  if (!sides.both(Part::Backward)) return std::nullopt;
  const Topic& first = sides.first.info->topic;
  const Topic& second = sides.second.info->topic;
  if (first.owner != second.owner || first.index != second.index || first.index < 0) return std::nullopt;
  if (first.hook == second.hook) {
    // The same bucket in the same backward, but with a different number of values or another kind of collective.
    if (first.hook.empty() || first.purpose != second.purpose ||
        sides.first.info->iteration != sides.second.info->iteration)
      return std::nullopt;
    return advise(fmt::format("the communication hook {} sends other values on each", first.hook.text()),
                  "register it with the same options on every rank");
  }
  const auto way = [](const Name& hook) {
    return hook.empty() ? std::string("without a communication hook")
                        : fmt::format("by the communication hook {}", hook.text());
  };
  return MismatchReason{
      fmt::format("{} reduces {}, {} {}", sides.first.name, way(first.hook), sides.second.name, way(second.hook)),
      "register the same communication hook on every rank",
      {}};
}

Found constructions(const Mismatch&, const Sides& sides) {
  if (sides.both(Part::Construction))
    return advise("the ranks make different wrappers here", "make the same ones, in the same order, on every rank");
  const auto found = sides.alone_in(Part::Construction);
  if (!found) return std::nullopt;
  const bool is_zero = found->first.info->topic.owner.name.empty();  // wrappers have an owner
  return advise(fmt::format("{} makes a {} here that {} does not make, or not yet", found->first.name,
                            is_zero ? "ZeroRedundancyOptimizer" : "wrapper", found->second.name),
                "make the same ones at the same place of the program on every rank");
}

// Empty if the activity is unknown.
const RankActivity& activity_of(const Mismatch& mismatch, const Side& side) {
  static const RankActivity unknown;
  return mismatch.activities.size() == mismatch.by_rank.size() ? mismatch.activities[side.rank] : unknown;
}

Found step_under_no_sync(const Mismatch& mismatch, const Sides& sides) {
  const auto found = sides.alone_in(Part::Step);
  if (!found) return std::nullopt;
  const auto& [stepping, other] = *found;
  const RankActivity& activity = activity_of(mismatch, stepping);
  if (activity.doing != Doing::Step || activity.local_backwards == 0) return std::nullopt;
  return MismatchReason{fmt::format("{} is in {}, and {} is not", stepping.name, in_words(activity), other.name),
                        fmt::format("run the last backward before a step outside no_sync on {} too", stepping.name),
                        {static_cast<int>(stepping.rank)}};
}

bool is_at(const CollectiveInfo& info, const Line& line) { return line && info.where == place_of(line); }

// `other` reduces a backward of a wrapper, or copies its buffers. The same forward was not recorded on `side`, so no
// backward of it can follow there.
Found forward_under_no_grad(const RankActivity& activity, const RankActivity& of_other, const Side& side,
                            const Side& other) {
  const Owner& wrapper = other.info->topic.owner;
  for (const RankActivity::Missed& missed : activity.missed()) {
    if (missed.how != RankActivity::Missed::How::ForwardUnderNoGrad || missed.wrapper != wrapper) continue;
    const bool is_the_same = other.part == Part::Buffers
                                 ? is_at(*other.info, missed.line)
                                 : std::ranges::any_of(of_other.forwards(), [&](const RankActivity::OfForward& each) {
                                     return each.wrapper == wrapper && each.forward == missed.line;
                                   });
    if (!is_the_same) return std::nullopt;
    return MismatchReason{
        fmt::format("the forward of {} at {} ran under no_grad{}{} on {} and not on {}, so that only {} comes to a "
                    "backward of it",
                    in_words(wrapper), in_words(missed.line), missed.opened ? " from " : "", in_words(missed.opened),
                    side.name, other.name, other.name),
        "run that forward under the NoGradGuard on every rank or on none",
        {static_cast<int>(side.rank)}};
  }
  return std::nullopt;
}

// Whether the backward that `other` is in reached nothing of its wrapper on the rank of `activity`.
bool passes_by(const RankActivity& activity, const Side& other) {
  return other.part == Part::Backward &&
         std::ranges::any_of(activity.missed(), [&](const RankActivity::Missed& missed) {
           return missed.how == RankActivity::Missed::How::BackwardReachesNothing &&
                  missed.wrapper == other.info->topic.owner && is_at(*other.info, missed.line);
         });
}

// The same backward reaches the wrapper only on `other`. If each side is in the backward of a wrapper that the other
// side's backward did not reach, the two are in different backwards of one line.
Found backward_reaches_nothing(const RankActivity& activity, const RankActivity& of_other, const Side& side,
                               const Side& other) {
  if (!passes_by(activity, other) || passes_by(of_other, side)) return std::nullopt;
  const std::string wrapper = in_words(other.info->topic.owner);
  return MismatchReason{
      fmt::format("the backward at {} reaches nothing of {} on {}, and does on {}", to_string(other.info->where),
                  wrapper, side.name, other.name),
      fmt::format(
          "look for a detach(), a NoGradGuard or a value that is read as a number between the results of {} and "
          "that loss on {}; a loss that leaves the wrapper out does so on every rank",
          wrapper, side.name),
      {static_cast<int>(side.rank)}};
}

// A rank goes on without a wrapper, and its activity says why.
Found missed_wrapper(const Mismatch& mismatch, const Sides& sides) {
  for (const auto& [side, other] : {std::pair(sides.first, sides.second), std::pair(sides.second, sides.first)}) {
    if (other.part != Part::Backward && other.part != Part::Buffers) continue;
    // Otherwise the rank is not training any more.
    const bool trains = side.part == Part::Backward || side.part == Part::Buffers || side.part == Part::Step;
    if (!trains && side.info->topic.phase != Phase::Report) continue;
    const RankActivity& activity = activity_of(mismatch, side);
    const RankActivity& of_other = activity_of(mismatch, other);
    Found found = forward_under_no_grad(activity, of_other, side, other);
    if (!found) found = backward_reaches_nothing(activity, of_other, side, other);
    if (found) return found;
  }
  return std::nullopt;
}

// After a refused backward a rank reduces zeros to inform the others; they miss that if they exchange something else
// first.
Found refused_backward(const Mismatch& mismatch, const Sides& sides) {
  for (const Side& side : {sides.first, sides.second}) {
    if (side.part != Part::Backward || activity_of(mismatch, side).doing != Doing::RefusedBackward) continue;
    return MismatchReason{fmt::format("the backward of {} was refused: its loss has no history", side.name),
                          fmt::format("repair the error that {} reports", side.name),
                          {static_cast<int>(side.rank)}};
  }
  return std::nullopt;
}

// The numbers of reduced backwards before each step at this line, and since the latest step.
struct BackwardsPerStep {
  std::set<size_t> before;
  size_t since = 0;
};
BackwardsPerStep count_backwards(const Mismatch& mismatch, const CollectiveInfo& step) {
  BackwardsPerStep found;
  // A backward may have preceded the oldest known collective.
  bool whole = mismatch.before.empty() || mismatch.before.front().sequence <= 1;
  for (const CollectiveInfo& each : mismatch.before) {
    if (each.topic == step.topic && each.where == step.where) {
      if (whole) found.before.insert(found.since);
      whole = true;
      found.since = 0;
    } else if (is_first_bucket_of(each, step.topic.owner)) {
      ++found.since;
    }
  }
  return found;
}

// One rank is at a step, another goes on without it.
Found step_or_not(const Mismatch& mismatch, const Sides& sides) {
  const auto found = sides.alone_in(Part::Step);
  if (!found || found->second.part == Part::Own || found->second.part == Part::Other) return std::nullopt;
  const auto& [stepping, other] = *found;
  const BackwardsPerStep backwards = count_backwards(mismatch, *stepping.info);
  const bool same_wrapper = other.part != Part::Backward || stepping.info->topic.owner == other.info->topic.owner;
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
  return advise(fmt::format("either {} left out a step, or {} left out a backward", other.name, stepping.name),
                "decide on every rank alike whether to step, and accumulate over as many backwards, the same of them "
                "under no_sync");
}

// Both ranks step optimizers that update the parameters of one wrapper each.
Found steps_of_wrappers(const Mismatch&, const Sides& sides) {
  if (!sides.both(Part::Step)) return std::nullopt;
  return advise(
      fmt::format("{} steps an optimizer of {}, {} one of {}", sides.first.name,
                  in_words(sides.first.info->topic.owner), sides.second.name, in_words(sides.second.info->topic.owner)),
      "step the same optimizers in the same order on every rank");
}

// Whether all ranks ran the layer between each two of their reduced backwards, and not since the
// latest.
bool misses_layer(const Mismatch& mismatch, const CollectiveInfo& layer) {
  bool runs = false;
  size_t times = 0;
  for (const CollectiveInfo& each : mismatch.before) {
    if (each.matches(layer)) {
      runs = true;
    } else if (is_first_bucket_of(each, each.topic.owner)) {
      if (!runs) return false;
      runs = false;
      ++times;
    }
  }
  return !runs && times > 0;
}

Found layer(const Mismatch& mismatch, const Sides& sides) {
  if (sides.both(Part::Layer))
    return advise("the ranks run other layers, or in another order", "run the same layers in the same order");
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
  return advise(fmt::format("{} runs a layer in training mode that {} does not run here", in_layer.name, other.name),
                "convert the module on every rank, run the same layers and as many batches, and evaluate in eval()");
}

Found backwards_of_wrappers(const Mismatch&, const Sides& sides) {
  if (!sides.both(Part::Backward)) return std::nullopt;
  return advise("the ranks are in the backwards of different wrappers",
                "run the backwards of the wrappers in the same order on every rank, and all of them");
}

// Both sides, the one in `phase` first; nothing if both or neither are in it.
std::optional<Sides> alone_in(Phase phase, const Sides& sides) {
  const bool first = sides.first.info->topic.phase == phase;
  if (first == (sides.second.info->topic.phase == phase)) return std::nullopt;
  return first ? sides : Sides{sides.second, sides.first};
}

// All ranks have the same flags of used parameters, but only one finds a fault in them.
Found reports(const Mismatch&, const Sides& sides) {
  const auto found = alone_in(Phase::Report, sides);
  if (!found) return std::nullopt;
  const auto& [reporting, other] = *found;
  const std::string wrapper = in_words(reporting.info->topic.owner);
  if (other.part == Part::Backward && other.info->topic.owner != reporting.info->topic.owner)
    return advise(fmt::format("{} is in a backward of {}, {} in one of {}", reporting.name, wrapper, other.name,
                              in_words(other.info->topic.owner)),
                  "run as many backwards of each wrapper, in the same order, on every rank");
  return advise(fmt::format("the backward of {} is wrong by what {} expects of it, and right by what {} does", wrapper,
                            reporting.name, other.name),
                "call expect(), with the same parameters, round the same backwards on every rank");
}

bool is_of_join(const CollectiveInfo& info) {
  return info.topic.phase == Phase::Join || info.topic.phase == Phase::EndOfJoin;
}

// Whether the latest collective of a join that all ranks ran was not the end of the join.
bool are_in_join(const Mismatch& mismatch) {
  const auto latest = std::find_if(mismatch.before.rbegin(), mismatch.before.rend(), is_of_join);
  return latest != mismatch.before.rend() && latest->topic.phase != Phase::EndOfJoin;
}

// A rank in a join asks the others what comes next.
Found joins(const Mismatch& mismatch, const Sides& sides) {
  const bool first = is_of_join(*sides.first.info);
  if (first == is_of_join(*sides.second.info)) return std::nullopt;
  const auto& [in_join, other] = first ? sides : Sides{sides.second, sides.first};
  if (other.part == Part::Own && are_in_join(mismatch)) {
    return advise(fmt::format("{} calls {} inside the join, where a rank without data takes part only in what the "
                              "joined wrappers do",
                              other.name, short_words(*other.info)),
                  "call it after finish(), or in a Joinable of your own that joins too");
  }
  return advise(fmt::format("{} is in a join and {} is not", in_join.name, other.name),
                "open Join on every rank before the loop, over the same wrappers, and finish() it after the loop");
}

// One rank averages parameters, periodically, instead of gradients.
Found averaging(const Mismatch&, const Sides& sides) {
  const auto found = alone_in(Phase::Averaging, sides);
  if (!found) return std::nullopt;
  const auto& [averages, other] = *found;
  return advise(fmt::format("{} averages the models here and {} does not", averages.name, other.name),
                "give the averagers the same period and warm-up on every rank, and call them after each step");
}

// A call of the program itself.
Found own_call(const Mismatch& mismatch, const Sides& sides) {
  const auto found = sides.alone_in(Part::Own);
  if (!found) return std::nullopt;
  const auto& [own, other] = *found;
  // Inside a custom function or a hook: the call comes between the plan of a backward and its end.
  if (activity_of(mismatch, own).doing == Doing::Backward && other.part == Part::Backward) {
    return advise(
        fmt::format("{} calls {} in its backward, to which that of {} does not come", own.name, short_words(*own.info),
                    other.name),
        "let the loss reach the same functions on every rank (look for a detach(), a NoGradGuard or a branch), "
        "and register the same gradient hooks");
  }
  const bool was_called = std::any_of(mismatch.before.begin(), mismatch.before.end(),
                                      [&](const CollectiveInfo& each) { return each.matches(*own.info); });
  if (was_called) {
    const bool left_out = other.part == Part::Backward || other.part == Part::Buffers;
    return advise(fmt::format("{} calls {}, as all ranks have done together before: either {}they are not at the same "
                              "place of their loops, or the condition around the call differs",
                              own.name, short_words(*own.info),
                              left_out ? "it left out a batch or the backward of one, or " : ""),
                  "leave out batches on all ranks together, and give every rank as many");
  }
  return advise(fmt::format("either {} never calls {}, or {} comes to it earlier (fewer batches)", other.name,
                            short_words(*own.info), own.name),
                "call it on every rank, outside of conditions, and give every rank as many batches, or use Join");
}

Found forward_or_not(const Mismatch&, const Sides& sides) {
  const auto found = sides.alone_in(Part::Buffers);
  if (!found) return std::nullopt;
  return advise(
      fmt::format("{} begins a forward that {} does not: it evaluates through the wrapper, or left out a backward, "
                  "or has more batches",
                  found->first.name, found->second.name),
      "evaluate under NoGradGuard or through the module, and run as many batches on every rank");
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
  return {"the ranks have taken different paths", "call the same collectives in the same order on every rank", {}};
}

}  // namespace brigade::dist
