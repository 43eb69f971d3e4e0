// Collects the numbers of backwards in ranges, and describes the ranges and the gaps between them in words.
#include <brigade/dist/errors/named_parameter.h>

#include <fmt/format.h>

namespace brigade::dist {
namespace {

std::string range(uint64_t first, uint64_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

}  // namespace

void UseHistory::add(uint64_t backward) {
  if (!ranges_.empty() && backward <= ranges_.back().second + 1) {
    ranges_.back().second = backward;
    return;
  }
  if (ranges_.size() == kRanges) {
    ranges_.erase(ranges_.begin());
    has_forgotten_ = true;
  }
  ranges_.emplace_back(backward, backward);
}

std::string UseHistory::in_words(uint64_t backward) const {
  if (ranges_.empty()) return "";
  std::vector<std::string> used, gaps;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    used.push_back(range(ranges_[i].first, ranges_[i].second));
    if (i > 0) gaps.push_back(range(ranges_[i - 1].second + 1, ranges_[i].first - 1));
  }
  const bool is_one = ranges_.size() == 1 && ranges_[0].first == ranges_[0].second;
  std::string text = fmt::format("{}used in {} {}, not ", has_forgotten_ ? "lately " : "",
                                 is_one ? "backward" : "backwards", joined(used));
  const uint64_t missing = ranges_.back().second + 1;
  const bool only_since = gaps.empty() && missing < backward;
  gaps.push_back(missing < backward ? fmt::format("since {}", missing) : range(missing, missing));
  return text + (only_since ? "" : "in ") + joined(gaps);
}

}  // namespace brigade::dist
