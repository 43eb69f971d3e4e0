// A process of ranks that ends before its work is done must not end well: its launcher, a script or a
// scheduler would take it for done.
#pragma once

namespace brigade::dist {

// From now on exit(0), on any thread, ends the process with status 1 and says why on standard error
// where a backward runs on another thread, or ranks that are threads have not ended (RanksAreThreads).
// Other statuses stay.
void fail_early_exits() noexcept;

// While it lives.
class RanksAreThreads {
 public:
  RanksAreThreads() noexcept;
  ~RanksAreThreads();
  RanksAreThreads(const RanksAreThreads&) = delete;
  RanksAreThreads& operator=(const RanksAreThreads&) = delete;
};

}  // namespace brigade::dist
