// An NCCL communicator whose calls never block forever.
//
// The communicator is nonblocking (blocking = 0): a call that is not done at once returns ncclInProgress, and its
// status is polled (ncclCommGetAsyncError) until the timeout. abort() may be called from another thread; it ends the
// kernels running on the device.
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

// Whether a call on a nonblocking communicator has queued its work.
inline bool is_queued(Result result) { return result == Result::Success || result == Result::InProgress; }

class Communicator {
 public:
  // All ranks must construct it at the same time, with the id made by one of them; `device` must be the current device.
  // Throws as call() does, with NCCL's own message.
  Communicator(const Library& library, const UniqueId& id, int rank, int size, Device device,
               std::chrono::milliseconds timeout, const RankName& name);
  // Makes a communicator for some of the ranks (ncclCommSplit). All ranks of this communicator must call it at the same
  // time, with no pending work on it, and its device must be current. `rank`: in the new communicator; -1: this rank is
  // not a member and gets null. Throws as call() does; this communicator is unusable then.
  std::shared_ptr<Communicator> split(int rank, std::chrono::milliseconds timeout, const RankName& name);
  // Waits briefly for the peers, so that none of them loses pending work.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Makes a call that queues work, and waits until NCCL has queued it. `what`: "ncclAllReduce". Throws DistError,
  // PeerError when a peer is the reason, TimeoutError.
  //
  // NCCL connects the ranks when a communicator is first used, and then waits for all of them. So if the call takes
  // long, `until_peers_come` is called once: it returns when the peers have arrived, or throws an error that names the
  // missing ones. Without it, missing ranks are not identified.
  using UntilPeersCome = std::function<void()>;
  void call(const char* what, const std::function<Result(Comm)>& function, const UntilPeersCome& until_peers_come = {});
  // Issues all NCCL calls made in `calls` together (ncclGroupStart, ncclGroupEnd), or none of them. `calls` must return
  // the first result for which is_queued() is false.
  void call_together(const std::function<Result(Comm)>& calls, const UntilPeersCome& until_peers_come = {});
  // Registers memory, so that collectives on it need no copy into NCCL's buffers; null when NCCL refuses.
  void* register_memory(void* data, size_t bytes) noexcept;
  void deregister(void* registration) noexcept;
  // The text of an asynchronous error, if there is one.
  std::optional<std::string> asynchronous_error();
  // The communicator is unusable afterwards.
  void abort() noexcept;

  // Counts of how this communicator has paused between polls so far.
  struct Pauses {
    uint64_t spins = 0, yields = 0, sleeps = 0;
  };
  Pauses pauses() const noexcept { return {spins_, yields_, sleeps_}; }

 private:
  using Clock = std::chrono::steady_clock;
  Communicator(const Library& library, Device device, std::chrono::milliseconds timeout, const RankName& name);

  // Waits until the communicator, made by the call `what`, is ready.
  void finish_making(const char* what, Result begun);

  // Polls until the communicator is no longer in progress, for at most `longest`, and again for `longest` after
  // `until_peers_come`; the mutex is free between polls.
  Result settle(Result result, std::chrono::milliseconds longest, const UntilPeersCome& until_peers_come = {});
  // Pauses after the given number of in-progress answers.
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
