// Finds a wrapper that a rank makes at the line of another rank's earlier wrapper.
#include <brigade/dist/checks/wrapper_history.h>

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace brigade::dist {
namespace {

Owner wrapper_of(const std::string& module, size_t number) {
  return {Name(fmt::format("DDP({})", module)), static_cast<uint32_t>(number)};
}

}  // namespace

void WrapperHistory::run_end_callbacks() const {
  for (const std::function<void()>& call : calls_)
    call();
}

WrapperHistory::~WrapperHistory() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    run_end_callbacks();
  } catch (...) {  // NOLINT(bugprone-empty-catch): a warning is not worth the end of the process
  }
}

Owner WrapperHistory::next(const std::string& module) { return wrapper_of(module, ++made_[module]); }

std::optional<WrapperHistory::Swapped> WrapperHistory::add(const std::string& module, std::vector<std::string> lines) {
  auto& known = lines_[module];
  std::optional<Swapped> found;
  for (size_t earlier = 0; earlier < known.size() && !found; ++earlier) {
    const std::vector<std::string>& before = known[earlier];
    for (size_t rank = 0; rank < lines.size() && !found; ++rank) {
      for (size_t other = 0; other < lines.size() && !found; ++other) {
        const bool late = lines[rank] == before[other] && before[rank] != before[other];
        if (!late || lines[rank] == lines[other]) continue;
        found = Swapped{in_words(wrapper_of(module, earlier + 1)), in_words(wrapper_of(module, known.size() + 1)),
                        static_cast<int>(rank), static_cast<int>(other)};
      }
    }
  }
  known.push_back(std::move(lines));
  return found;
}

}  // namespace brigade::dist
