// Matches lines with announced errors, and holds back lines that may still become one.
#include <brigade/dist/rendezvous/launch/error_once.h>

#include <fmt/format.h>

#include <utility>

namespace brigade::dist {
namespace {

constexpr size_t kKept = 16;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  lines.push_back(text.substr(begin));
  return lines;
}

// Whether `line` can be line `i` of the text: other text may precede it ("  what():  ") or follow it.
bool fits(const std::vector<std::string>& text, size_t i, const std::string& line) {
  const bool first = i == 0;
  const bool last = i + 1 == text.size();
  if (first && last) return line.find(text[i]) != std::string::npos;
  if (first) return line.ends_with(text[i]);
  return last ? line.starts_with(text[i]) : line == text[i];
}

void append(ErrorOnce::Lines& to, const ErrorOnce::Lines& more) {
  to.shown.insert(to.shown.end(), more.shown.begin(), more.shown.end());
  to.brief.insert(to.brief.end(), more.brief.begin(), more.brief.end());
}

}  // namespace

void ErrorOnce::announce(int rank, const std::string& key, const std::string& text) {
  if (text.empty()) return;
  Rank& state = ranks_[rank];
  state.announced.push_back({key, split(text)});
  // Held lines refer to announced errors by index, so none is dropped while lines are held.
  while (state.announced.size() > kKept && state.held.empty())
    state.announced.pop_front();
}

ErrorOnce::Lines ErrorOnce::show(int rank, const Error& error, const std::vector<std::string>& lines) {
  const std::string& begin = error.lines.front();
  const bool one_line = error.lines.size() == 1;
  const size_t at = one_line ? lines.front().find(begin) : lines.front().size() - begin.size();
  const std::string before = lines.front().substr(0, at);
  const std::string after =
      one_line ? lines.front().substr(at + begin.size()) : lines.back().substr(error.lines.back().size());
  const auto [shown_by, first] = shown_by_.emplace(error.key, rank);
  Lines result{{}, {before + "(the error above)" + after}};
  if (first) {
    result.shown = lines;
  } else {
    result.shown = {fmt::format("{}(the same error as on rank {}, above){}", before, shown_by->second, after)};
  }
  return result;
}

ErrorOnce::Lines ErrorOnce::line(int rank, const std::string& line) {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return {{line}, {line}};
  Rank& state = found->second;
  std::vector<size_t> candidates;
  if (state.held.empty()) {
    for (size_t i = 0; i < state.announced.size(); ++i)
      candidates.push_back(i);
  } else {
    candidates = state.candidates;
  }
  std::erase_if(candidates, [&](size_t i) { return !fits(state.announced[i].lines, state.held.size(), line); });
  if (candidates.empty()) {
    if (state.held.empty()) return {{line}, {line}};
    // Not the text after all; this line may be the first of another.
    Lines result = end(rank);
    append(result, this->line(rank, line));
    return result;
  }
  state.held.push_back(line);
  for (const size_t i : candidates) {
    if (state.announced[i].lines.size() == state.held.size())
      return show(rank, state.announced[i], std::exchange(state.held, {}));
  }
  state.candidates = std::move(candidates);
  return {};
}

ErrorOnce::Lines ErrorOnce::end(int rank) {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return {};
  std::vector<std::string> held = std::exchange(found->second.held, {});
  return {held, held};
}

}  // namespace brigade::dist
