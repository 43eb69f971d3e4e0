// Activities, departures and the status of a rank as text.
#include <brigade/dist/errors/rank_activity.h>

#include <brigade/dist/errors/collective.h>

#include <fmt/format.h>

#include <unordered_map>

namespace brigade::dist {

// --- Records an activity and formats it as text.

namespace {

std::string backward_in_words(const RankActivity& activity) {
  std::string text = "a backward";
  const char* between = " of ";
  for (const RankActivity::OfForward& each : activity.forwards()) {
    text += between + in_words(each.wrapper);
    if (each.forward) text += ", of the forward at " + in_words(each.forward);
    between = "; of ";
  }
  return text;
}

std::string step_in_words(const RankActivity& activity) {
  std::string text = "a step of " + in_words(activity.owner);
  if (activity.local_backwards == 0) return text;
  return text + fmt::format(", with {} {} under no_sync not reduced", activity.local_backwards,
                            activity.local_backwards == 1 ? "backward" : "backwards");
}

std::string in_words(const RankActivity::Missed& missed) {
  if (missed.how == RankActivity::Missed::How::BackwardReachesNothing)
    return fmt::format(", after the backward at {} reached nothing of {}", in_words(missed.line),
                       in_words(missed.wrapper));
  return fmt::format(", after the forward of {} at {} under no_grad{}{}", in_words(missed.wrapper),
                     in_words(missed.line), missed.opened ? " from " : "", in_words(missed.opened));
}

}  // namespace

Line::Line(const SourceLocation& where) : number(where.line()) {
  if (number == 0) return;
  // Cached by the address of the file name, a literal of the compiler's; the text there is compared all the same.
  struct Known {
    std::string path;
    Name file;
  };
  thread_local std::unordered_map<const char*, Known> known;
  Known& one = known[where.file_name()];
  if (one.path != where.file_name()) one = {where.file_name(), Name(Place(where).file)};
  file = one.file;
}

std::string in_words(const Line& line) { return to_string(place_of(line)); }

Place place_of(const Line& line) { return line ? Place(line.file.text(), line.number) : Place(); }

void RankActivity::add(const OfForward& forward) noexcept {
  if (forward_count < kMostForwards) first_forwards[forward_count++] = forward;
}

void RankActivity::add(const Missed& missed) noexcept {
  if (missed_count < kMostMissed) first_missed[missed_count++] = missed;
}

std::string in_words(const RankActivity& activity) {
  std::string text;
  switch (activity.doing) {
    case Doing::Nothing: return "";
    case Doing::Program: return activity.text;
    case Doing::Forward: text = "a forward of " + in_words(activity.owner); break;
    case Doing::AfterForward: text = "its own code, after a forward of " + in_words(activity.owner); break;
    case Doing::Backward: text = backward_in_words(activity); break;
    case Doing::AfterBackward:
      text =
          fmt::format("its own code, after a backward of {} at {}", in_words(activity.owner), in_words(activity.after));
      break;
    case Doing::RefusedBackward:
      text = fmt::format("a backward of {}, refused: its loss has no history", in_words(activity.owner));
      break;
    case Doing::Step: text = step_in_words(activity); break;
    case Doing::AfterStep:
      text = fmt::format("its own code, after a step of {} at {}", in_words(activity.owner), in_words(activity.after));
      break;
  }
  for (const RankActivity::Missed& missed : activity.missed())
    text += in_words(missed);
  return text;
}

// --- Formats each way in which a rank can end.

std::string way_of(const Departure& end) {
  switch (end.how) {
    case Departure::How::Running: return "runs";
    case Departure::How::Left: return "left the group";
    case Departure::How::LeftByException: return "left while an exception was in flight";
    case Departure::How::Failed: return "failed";
    case Departure::How::Died: return "died";
    case Departure::How::GaveUp:
    case Departure::How::Unknown: return end.words;
  }
  return end.words;
}

std::string in_words(const Departure& end) {
  const std::string way = way_of(end);
  if (end.words.empty() || way == end.words) return way;
  return end.how == Departure::How::Died ? fmt::format("{} ({})", way, end.words) : way + ": " + end.words;
}

// --- Formats the status of a rank.

std::string in_words(const RankStatus& place) {
  if (!place.unasked.empty()) return fmt::format("it is not known where rank {} is: {}", place.rank, place.unasked);
  std::string text;
  if (place.last.sequence == 0) {
    text = fmt::format("rank {} has not called any collective", place.rank);
  } else {
    text = fmt::format("rank {} {} {}", place.rank, place.finished ? "was last in" : "is in", in_words(place.last));
  }
  if (place.activity.doing != Doing::Nothing) {
    text += fmt::format(", and for {:.1f} s in {}", place.activity_seconds, in_words(place.activity));
    if (place.activity.where) text += " at " + in_words(place.activity.where);
  }
  if (place.silent_seconds > 2) text += fmt::format(", last heard of {:.1f} s ago", place.silent_seconds);
  return text;
}

}  // namespace brigade::dist
