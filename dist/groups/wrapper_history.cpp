// Looks for a wrapper that a rank makes at the line of another rank's earlier one.
#include <brigade/dist/groups/wrapper_history.h>

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace brigade::dist {

namespace {

std::string title(const std::string& module, int number) {
  return number == 1 ? fmt::format("DDP({})", module) : fmt::format("DDP({})#{}", module, number);
}

}  // namespace

void WrapperHistory::tell_rest() const {
  for (const std::function<void()>& call : calls_)
    call();
}

WrapperHistory::~WrapperHistory() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    tell_rest();
  } catch (...) {  // NOLINT(bugprone-empty-catch): a warning is not worth the end of the process
  }
}

std::string WrapperHistory::next_title(const std::string& module) { return title(module, ++made_[module]); }

std::optional<WrapperHistory::Swapped> WrapperHistory::add(const std::string& module, std::vector<std::string> lines) {
  auto& known = lines_[module];
  std::optional<Swapped> found;
  for (size_t earlier = 0; earlier < known.size() && !found; ++earlier) {
    const std::vector<std::string>& before = known[earlier];
    for (size_t rank = 0; rank < lines.size() && !found; ++rank) {
      for (size_t other = 0; other < lines.size() && !found; ++other) {
        const bool late = lines[rank] == before[other] && before[rank] != before[other];
        if (!late || lines[rank] == lines[other]) continue;
        found = Swapped{title(module, static_cast<int>(earlier) + 1), title(module, static_cast<int>(known.size()) + 1),
                        static_cast<int>(rank), static_cast<int>(other)};
      }
    }
  }
  known.push_back(std::move(lines));
  return found;
}

}  // namespace brigade::dist
