// Ranks as threads of this process, each with its own group; the first error is thrown again.
#include <brigade/dist/groups/threads/run_threads.h>

#include <brigade/core/random.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::dist {

void run_threads(int ranks, const std::function<void(ProcessGroupPtr)>& body, std::chrono::milliseconds timeout) {
  std::vector<ProcessGroupPtr> groups = make_thread_groups(ranks, timeout);
  std::mutex mutex;
  std::exception_ptr first_error;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    // Each thread owns its group: when it ends, its peers learn that it has left.
    threads.emplace_back([&, group = std::move(groups[static_cast<size_t>(rank)])]() mutable {
#ifdef _OPENMP
      omp_set_num_threads(std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / ranks));
#endif
      manual_seed(static_cast<uint64_t>(group->rank()));
      try {
        body(group);
      } catch (...) {
        std::string reason = "an exception ended its thread";
        try {
          throw;
        } catch (const std::exception& error) {
          reason = error.what();
        } catch (...) {
        }
        {
          std::lock_guard lock(mutex);
          // What a rank says because another failed is less interesting than the failure itself.
          if (!first_error) first_error = std::current_exception();
        }
        group->abort(reason);
      }
      group.reset();
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace brigade::dist
