// Runs ranks as threads of this process, each with its own group; rethrows the first error.
#include <brigade/dist/groups/threads/run_threads.h>

#include <brigade/core/error.h>
#include <brigade/core/random.h>
#include <brigade/dist/groups/process_end.h>
#include <brigade/dist/groups/shm/shared_group.h>
#include <brigade/dist/rendezvous/launch/environment.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::dist {
namespace {

// Tracks which ranks have ended.
class Ends {
 public:
  explicit Ends(int ranks) : ended_(static_cast<size_t>(ranks)) {}
  void add(int rank) {
    const std::lock_guard lock(mutex_);
    ended_[static_cast<size_t>(rank)] = true;
    changed_.notify_all();
  }
  // Waits until all ranks have ended. Throws TimeoutError with the status of those that have not.
  void wait_for_all(std::chrono::milliseconds exit_timeout, const std::vector<std::weak_ptr<ProcessGroup>>& groups) {
    std::unique_lock lock(mutex_);
    for (auto left = running(); !left.empty(); left = running()) {
      const auto someone_ended = [&] { return running().size() < left.size(); };
      if (exit_timeout.count() == 0 || left.size() == ended_.size()) {
        changed_.wait(lock, someone_ended);
      } else if (!changed_.wait_for(lock, exit_timeout, someone_ended)) {
        throw TimeoutError("run_threads: rank {} has run on for {} ms after the last of the others had ended{}",
                           fmt::join(left, ", "), exit_timeout.count(), places(left, groups));
      }
    }
  }

 private:
  static std::string places(const std::vector<int>& ranks, const std::vector<std::weak_ptr<ProcessGroup>>& groups) {
    std::string text;
    for (const int rank : ranks) {
      const ProcessGroupPtr group = groups[static_cast<size_t>(rank)].lock();
      if (const auto* const shared = dynamic_cast<const shm::SharedGroup*>(group.get()))
        text += "; " + in_words(shared->own_status());
    }
    return text;
  }
  std::vector<int> running() const {
    std::vector<int> ranks;
    for (size_t r = 0; r < ended_.size(); ++r) {
      if (!ended_[r]) ranks.push_back(static_cast<int>(r));
    }
    return ranks;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> ended_;
};

// std::terminate prints the exception in flight.
[[noreturn]] void end_process(const TimeoutError& late, const std::exception_ptr& first_error) {
  std::string text = late.what();
  try {
    if (first_error) std::rethrow_exception(first_error);
  } catch (const std::exception& error) {
    text += fmt::format("; before that a rank failed: {}", error.what());
  }
  try {
    throw TimeoutError(text);
  } catch (const TimeoutError&) {
    std::terminate();
  }
}

}  // namespace

void run_threads(int ranks, const std::function<void(ProcessGroupPtr)>& body, std::chrono::milliseconds timeout,
                 std::chrono::milliseconds exit_timeout) {
  check_thread_count();
  const RanksAreThreads until_all_have_ended;
  if (exit_timeout.count() < 0)
    throw ValueError("run_threads: expected an exit_timeout of at least 0 ms, got {}", exit_timeout.count());
  exit_timeout = std::min<std::chrono::milliseconds>(exit_timeout, std::chrono::hours(24 * 365));
  std::vector<ProcessGroupPtr> groups = make_thread_groups(ranks, timeout);
  const std::vector<std::weak_ptr<ProcessGroup>> seen(groups.begin(), groups.end());
  std::mutex mutex;
  std::exception_ptr first_error;
  Ends ends(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    // Each thread owns its group, so when it ends, its peers see that it has left.
    threads.emplace_back([&, group = std::move(groups[static_cast<size_t>(rank)])]() mutable {
#ifdef _OPENMP
      omp_set_num_threads(std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / ranks));
#endif
      const int own = group->rank();
      manual_seed(static_cast<uint64_t>(own));
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
          // Errors that follow from another rank's failure matter less than that failure.
          if (!first_error) first_error = std::current_exception();
        }
        group->abort(reason);
      }
      group.reset();
      ends.add(own);
    });
  }
  try {
    ends.wait_for_all(exit_timeout, seen);
  } catch (const TimeoutError& late) {
    const std::lock_guard lock(mutex);
    end_process(late, first_error);
  }
  for (std::thread& thread : threads)
    thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace brigade::dist
