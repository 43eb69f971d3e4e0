// The listeners of a thread, and how they and the observers of leaves hear of an update.
#include <brigade/autograd/listener.h>

#include <brigade/autograd/detail/listeners.h>
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

void announce_update(std::span<const Tensor> parameters, const std::function<Update()>& describe) {
  if (silent_updates > 0) return;
  const auto registered = detail::registered_listeners();  // kept alive while they are called
  std::vector<Listener*> listeners;
  for (const auto& listener : registered)
    listeners.push_back(listener.get());
  for (const Tensor& parameter : parameters) {
    const AutogradMeta* known = meta(parameter);
    if (!known) continue;
    for (const AutogradMeta::Observer& observer : known->observers) {
      if (std::find(listeners.begin(), listeners.end(), observer.listener) == listeners.end())
        listeners.push_back(observer.listener);
    }
  }
  if (listeners.empty()) return;
  const Update update = describe();
  for (Listener* listener : listeners)
    listener->on_update(update);
}

}  // namespace brigade::autograd
