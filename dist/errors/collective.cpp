// Formats the status of a rank.
#include <brigade/dist/errors/collective.h>

#include <fmt/format.h>

namespace brigade::dist {

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
