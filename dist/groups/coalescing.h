// The calls that a coalescing manager has collected, and the works that it has returned for them.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace brigade::dist {

// A call that owns its description, because it is posted later.
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
  // `where`: the line that made the manager.
  explicit Coalescing(SourceLocation where);

  SourceLocation where() const noexcept { return where_; }
  // The returned work must not be waited for before settle(). Throws ValueError or DeviceError for a call that cannot
  // be issued together with the previous ones: a different kind, a different device, or memory that one of them uses.
  WorkPtr add(const CollectiveCall& call);
  // Valid while this object lives.
  std::vector<CollectiveCall> calls() const;
  // Completes the returned works: they forward to `whole`, or throw `error`.
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
