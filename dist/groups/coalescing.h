// What a coalescing manager has collected, and the works that it has promised for it.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace brigade::dist {

// A call whose text is its own: it is posted later.
struct KeptCall {
  explicit KeptCall(const CollectiveCall& given) : call(given), description(given.options.description) {}
  CollectiveCall get() const {
    CollectiveCall result = call;
    result.options.description = description;
    return result;
  }
  CollectiveCall call;
  std::string description;
};

class Coalescing {
 public:
  // `where` made the manager.
  explicit Coalescing(SourceLocation where);

  SourceLocation where() const noexcept { return where_; }
  // Its work is not to be waited for before settle(). Throws ValueError, DeviceError for a call that cannot be issued
  // together with those before: another kind, another device, memory that one of them uses.
  WorkPtr add(const CollectiveCall& call);
  // Good as long as this lives.
  std::vector<CollectiveCall> calls() const;
  // The works are all `whole` from now on; or they throw `error`.
  void settle(WorkPtr whole);
  void settle(const std::exception_ptr& error);

 private:
  friend class CoalescedWork;
  struct Outcome;

  const SourceLocation where_;
  std::vector<std::unique_ptr<KeptCall>> kept_;
  std::shared_ptr<Outcome> outcome_;
};

}  // namespace brigade::dist
