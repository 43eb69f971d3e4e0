// Starts and ends the coalescing of a group's collectives.
#include <brigade/dist/groups/coalescing_manager.h>

#include <brigade/core/error.h>
#include <brigade/dist/groups/coalescing.h>
#include <brigade/dist/groups/work_queue.h>

#include <exception>
#include <utility>

namespace brigade::dist {

CoalescingManager::CoalescingManager(ProcessGroupPtr group, SourceLocation where)
    : group_(std::move(group)), exceptions_(std::uncaught_exceptions()) {
  if (!group_) throw ValueError(where, "CoalescingManager: the process group is empty; see init_process_group");
  if (group_->rank() < 0)
    throw DistError(where, "CoalescingManager: this rank is no member of the group; make it on members only");
  if (group_->coalescing_)
    throw DistError(where, "CoalescingManager: the group has one already, made at {}; end that one first",
                    group_->coalescing_->where());
  group_->coalescing_ = coalescing_ = std::make_shared<Coalescing>(where);
}

CoalescingManager::~CoalescingManager() noexcept(false) {
  if (!coalescing_) return;
  if (std::uncaught_exceptions() > exceptions_) {
    group_->coalescing_ = nullptr;
    coalescing_->settle(std::make_exception_ptr(
        DistError(coalescing_->where(), "nothing was issued: an exception left the block of this coalescing manager")));
  } else {
    end()->wait();
  }
}

WorkPtr CoalescingManager::end() {
  const std::shared_ptr<Coalescing> ended = std::exchange(coalescing_, nullptr);
  if (!ended) {
    if (!work_) throw DistError("CoalescingManager: what it has collected could not be issued");
    return work_;
  }
  group_->coalescing_ = nullptr;
  const std::vector<CollectiveCall> calls = ended->calls();
  try {
    work_ = calls.empty() ? combined_work({}) : group_->post_coalesced(calls, ended->where());
  } catch (...) {
    ended->settle(std::current_exception());
    throw;
  }
  ended->settle(work_);
  return work_;
}

}  // namespace brigade::dist
