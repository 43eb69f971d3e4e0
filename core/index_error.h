// Errors for bad indices, the same on every device, and the user's line for errors that surface late.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/core/error.h>

#include <cstdint>

namespace brigade {

// What indexes what: {"embedding", "index", "row"}. Constants with static lifetime: kernels carry
// their addresses.
struct IndexRole {
  const char* op;
  const char* index;
  const char* what;
};

// "embedding: index 9 at position 3 is not a row 0..4"
IndexError index_error(const IndexRole& role, int64_t index, int64_t position, int64_t count);

// Throws IndexError for the first of `indices` outside 0..count-1.
void check_indices(const IndexRole& role, const int64_t* indices, int64_t length, int64_t count);

// RAII: records the user's call that this thread is in. A kernel on a device carries it along, so
// that an error found after the call has returned can still name it.
class CallSite {
 public:
  explicit CallSite(std::source_location where) noexcept : before_(current_) { current_ = where; }
  ~CallSite() { current_ = before_; }
  CallSite(const CallSite&) = delete;
  CallSite& operator=(const CallSite&) = delete;

  // line() == 0 outside of all calls
  static std::source_location current() noexcept { return current_; }

 private:
  BRIGADE_INITIAL_EXEC static inline constinit thread_local std::source_location current_{};

  std::source_location before_;
};

}  // namespace brigade
