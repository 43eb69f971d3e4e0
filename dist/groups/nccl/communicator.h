// A communicator of NCCL that no call waits for without an end.
//
// It is made without blocking (blocking = 0), so a call that is not done at once says so, and how it
// went is asked for (ncclCommGetAsyncError) until the time is over. abort() may come from another
// thread; it ends what runs on the device.
#pragma once

#include <brigade/core/device.h>
#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/groups/nccl/library.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace brigade::dist::nccl {

// Of a call that queues work on a communicator that does not block.
inline bool is_queued(Result result) { return result == Result::Success || result == Result::InProgress; }

class Communicator {
 public:
  // All ranks at the same time, with the id of one of them; the device has to be the current one.
  // Throws as call() does, with NCCL's own words.
  Communicator(const Library& library, const UniqueId& id, int rank, int size, Device device,
               std::chrono::milliseconds timeout, const RankName& name);
  // One for some of the ranks (ncclCommSplit). All ranks of this one at the same time, with nothing
  // under way on it, and its device the current one. `rank`: in the new one; -1: this one is no member
  // and gets null. Throws as call() does; nothing can be called on this one then.
  std::shared_ptr<Communicator> split(int rank, std::chrono::milliseconds timeout, const RankName& name);
  // Waits for the peers a little, so that none of them loses what is under way.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // A call that queues work, until NCCL has queued it. `what`: "ncclAllReduce". Throws DistError, PeerError when a
  // peer is the reason, TimeoutError.
  //
  // NCCL connects the ranks when a communicator is first used, and then waits for all of them. So where it takes long,
  // `until_peers_come` is called once: it returns when they have come, or throws what is known of those that have not.
  // Without it, who does not come is not known.
  using UntilPeersCome = std::function<void()>;
  void call(const char* what, const std::function<Result(Comm)>& function, const UntilPeersCome& until_peers_come = {});
  // What `calls` calls is issued together (ncclGroupStart, ncclGroupEnd), or nothing of it. It returns the first result that
  // is_queued() is false for.
  void call_together(const std::function<Result(Comm)>& calls, const UntilPeersCome& until_peers_come = {});
  // So that collectives on it need no copy into NCCL's buffers; null where NCCL does not want to.
  void* register_memory(void* data, size_t bytes) noexcept;
  void deregister(void* registration) noexcept;
  // What went wrong beside the calls, in words; nothing when all is well.
  std::optional<std::string> asynchronous_error();
  // Nothing can be called afterwards.
  void abort() noexcept;

  // What was done so far between an answer that NCCL is in progress and the next question.
  struct Pauses {
    uint64_t spins = 0, yields = 0, sleeps = 0;
  };
  Pauses pauses() const noexcept { return {spins_, yields_, sleeps_}; }

 private:
  using Clock = std::chrono::steady_clock;
  Communicator(const Library& library, Device device, std::chrono::milliseconds timeout, const RankName& name);

  // Waits until it is made, by `what`.
  void finish_making(const char* what, Result begun);

  // Until the communicator is no longer in progress, for `longest`, and as long again after `until_peers_come`; the mutex
  // is free in between.
  Result settle(Result result, std::chrono::milliseconds longest, const UntilPeersCome& until_peers_come = {});
  // After so many answers that it is.
  void pause(int answers);
  std::string in_words(const char* what, Result result);
  std::exception_ptr error_of(const char* what, Result result);

  const Library& library_;
  const RankName name_;
  const Device device_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  Comm comm_ = nullptr;
  std::atomic<uint64_t> spins_{0}, yields_{0}, sleeps_{0};
};

}  // namespace brigade::dist::nccl
