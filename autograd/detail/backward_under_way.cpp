// Counts the running backwards of the process and of each thread.
#include <brigade/autograd/detail/backward_under_way.h>

#include <atomic>

namespace brigade::autograd::detail {

namespace {

std::atomic<int> of_process{0};
thread_local int of_thread = 0;

}  // namespace

BackwardUnderWay::BackwardUnderWay() noexcept {
  ++of_thread;
  of_process.fetch_add(1, std::memory_order_relaxed);
}

BackwardUnderWay::~BackwardUnderWay() {
  --of_thread;
  of_process.fetch_sub(1, std::memory_order_relaxed);
}

bool backward_elsewhere() noexcept { return of_process.load(std::memory_order_relaxed) > of_thread; }

}  // namespace brigade::autograd::detail
