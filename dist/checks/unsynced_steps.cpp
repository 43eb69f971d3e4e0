// Thresholds for the warning about unsynchronized optimizer steps, and the step that the warning names.
#include <brigade/dist/checks/unsynced_steps.h>

#include <brigade/core/place.h>

#include <fmt/format.h>

namespace brigade::dist {

namespace {

constexpr uint64_t kMany = 1000;  // local SGD averages more often
constexpr uint64_t kEnough = 2;   // a single step may be a smoke test

}  // namespace

void UnsyncedSteps::end() noexcept {
  is_over_ = true;
  left_.clear();
}

bool UnsyncedSteps::add(const std::string& optimizer, SourceLocation where) {
  if (++count_ == kEnough) second_ = fmt::format("{}.step() at {}", optimizer, to_string(Place(where)));
  return are_many();
}

bool UnsyncedSteps::are_many() const noexcept { return count_ == kMany; }

bool UnsyncedSteps::are_enough() const noexcept { return !is_over_ && count_ >= kEnough; }

std::string UnsyncedSteps::how_many(const std::string& all) const {
  return are_many() ? fmt::format("{} steps", count_) : all;
}

}  // namespace brigade::dist
