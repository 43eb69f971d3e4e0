// Uses linear scans, since there are few wrappers.
#include <brigade/dist/reducer/launch_order.h>

#include <brigade/dist/reducer/round.h>

#include <algorithm>

namespace brigade::dist {

LaunchOrder& LaunchOrder::of_this_thread() noexcept {
  static thread_local LaunchOrder order;
  return order;
}

void LaunchOrder::add(Round& round, const ProcessGroup& group, uint64_t forward) {
  const auto place = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& each) { return each.group == &group && each.forward < forward; });
  entries_.insert(place, {&round, &group, forward});
}

void LaunchOrder::remove(const Round& round) noexcept {
  std::erase_if(entries_, [&](const Entry& each) { return each.round == &round; });
}

const ProcessGroup* LaunchOrder::group_of(const Round& round) const noexcept {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) { return each.round == &round; });
  return found == entries_.end() ? nullptr : found->group;
}

void LaunchOrder::advance(const Round& round) const {
  if (is_single()) return entries_.front().round->send_ready();
  const ProcessGroup* const group = group_of(round);
  for (const Entry& each : entries_) {
    if (each.group != group) continue;
    each.round->send_ready();
    if (!each.round->has_sent_all()) return;
  }
}

void LaunchOrder::send_rest(const Round& round) const {
  const ProcessGroup* const group = group_of(round);
  for (const Entry& each : entries_) {
    if (each.group == group) each.round->send_rest();
  }
}

void LaunchOrder::fail() const noexcept {
  for (const Entry& each : entries_)
    each.round->fail();
}

}  // namespace brigade::dist
