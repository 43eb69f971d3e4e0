// The listeners of a thread, and how they and the observers of leaves are notified of an update.
#include <brigade/autograd/listener.h>

#include <brigade/autograd/detail/plan.h>
#include <brigade/autograd/detail/thread_state.h>
#include <brigade/autograd/meta.h>

#include <algorithm>

namespace brigade::autograd {
namespace {
thread_local int silent_updates = 0;
thread_local std::vector<std::weak_ptr<Listener>> thread_listeners;
}  // namespace

std::vector<std::shared_ptr<Listener>> detail::registered_listeners() {
  std::erase_if(thread_listeners, [](const auto& listener) { return listener.expired(); });
  std::vector<std::shared_ptr<Listener>> alive;
  for (const auto& each : thread_listeners) {
    if (auto listener = each.lock()) alive.push_back(std::move(listener));
  }
  return alive;
}

void add_listener(const std::shared_ptr<Listener>& listener) { thread_listeners.push_back(listener); }

SilentUpdates::SilentUpdates() noexcept { ++silent_updates; }
SilentUpdates::~SilentUpdates() { --silent_updates; }

uint64_t recorded_nodes() noexcept { return detail::peek_sequence(); }

// Neighboring parameters usually have the same listener.
static bool holds(const std::vector<Listener*>& found, const Listener* listener) {
  return !found.empty() && (found.back() == listener || std::find(found.begin(), found.end(), listener) != found.end());
}

void announce_reading(std::span<const Tensor> leaves) {
  if (silent_updates > 0) return;
  std::vector<Listener*> told;
  for (const Tensor& leaf : leaves) {
    const AutogradMeta* known = leaf.defined() ? meta(leaf) : nullptr;
    if (!known) continue;
    for (const AutogradMeta::Observer& observer : known->observers) {
      if (holds(told, observer.listener)) continue;
      told.push_back(observer.listener);
      observer.listener->on_gradients_wanted(leaves);
    }
  }
}

AnnouncedUpdate::AnnouncedUpdate(std::span<const Tensor> parameters, const std::function<Update()>& describe)
    : parameters_(parameters), is_silent_(silent_updates > 0) {
  if (is_silent_) return;
  registered_ = detail::registered_listeners();
  const std::vector<Listener*> told = listeners();
  if (told.empty()) return;
  const Update update = describe();
  for (Listener* listener : told)
    listener->on_update(update);
}

AnnouncedUpdate::~AnnouncedUpdate() {
  if (is_silent_) return;
  for (Listener* listener : listeners())
    listener->on_update_end();
}

// The listeners of this thread, and those that currently observe a parameter.
std::vector<Listener*> AnnouncedUpdate::listeners() const {
  std::vector<Listener*> found;
  for (const auto& listener : registered_)
    found.push_back(listener.get());
  for (const Tensor& parameter : parameters_) {
    const AutogradMeta* known = meta(parameter);
    if (!known) continue;
    for (const AutogradMeta::Observer& observer : known->observers) {
      if (!holds(found, observer.listener)) found.push_back(observer.listener);
    }
  }
  return found;
}

}  // namespace brigade::autograd
