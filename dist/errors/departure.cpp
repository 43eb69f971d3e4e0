// Formats each way in which a rank can end.
#include <brigade/dist/errors/departure.h>

#include <fmt/format.h>

namespace brigade::dist {

std::string in_words(const Departure& end) {
  switch (end.how) {
    case Departure::How::Running: return "runs";
    case Departure::How::Left: return end.words.empty() ? "left the group" : "left the group: " + end.words;
    case Departure::How::LeftByException: return "left while an exception was in flight";
    case Departure::How::Failed: return "failed: " + end.words;
    case Departure::How::Died: return fmt::format("died ({})", end.words);
    case Departure::How::GaveUp:
    case Departure::How::Unknown: return end.words;
  }
  return end.words;
}

}  // namespace brigade::dist
