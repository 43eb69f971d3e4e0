// Stores reasons and questions as values in the store.
#include <brigade/dist/groups/hosts/cause.h>

#include <brigade/dist/errors/wire.h>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

namespace brigade::dist {

using Milliseconds = std::chrono::milliseconds;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Reason, rank, text, verdicts)

SharedCause::SharedCause(std::shared_ptr<Store> store, std::string key, int rank, Milliseconds timeout)
    : store_(std::move(store)), key_(std::move(key)), rank_(rank), timeout_(timeout) {}

void SharedCause::tell(const Reason& reason) const noexcept {
  try {
    if (!store_->check(key_)) store_->set(key_, to_text(reason));
  } catch (const std::exception&) {
    // The store may be gone before us.
  }
}

std::optional<Reason> SharedCause::told(Milliseconds time) const noexcept {
  using Clock = std::chrono::steady_clock;
  try {
    const auto until = Clock::now() + time;
    while (true) {
      if (store_->check(key_)) return decoded<Reason>(store_->get(key_, Milliseconds(100)));
      if (Clock::now() >= until) break;
      std::this_thread::sleep_for(Milliseconds(10));
    }
  } catch (const std::exception&) {
    // No store, no reason.
  }
  return std::nullopt;
}

void SharedCause::ask(std::span<const int> ranks) const noexcept {
  try {
    for (const int rank : ranks)
      store_->set(question(rank), "");
  } catch (const std::exception&) {
    // No store, no answer.
  }
}

bool SharedCause::asked() const noexcept {
  try {
    return store_->check(question(rank_));
  } catch (const std::exception&) {
    return false;
  }
}

Milliseconds SharedCause::time_to_ask() const noexcept {
  return std::clamp(timeout_ / 20, Milliseconds(20), Milliseconds(500));
}

Milliseconds SharedCause::time_to_answer() const noexcept { return 2 * time_to_ask() + Milliseconds(300); }

std::string SharedCause::question(int rank) const { return fmt::format("{}/whom-does-{}-wait-for", key_, rank); }

}  // namespace brigade::dist
