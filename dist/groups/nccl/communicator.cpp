// NCCL calls with timeouts.
#include <brigade/dist/groups/nccl/communicator.h>

#include <brigade/core/error.h>
#include <brigade/dist/groups/unfinished.h>

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace brigade::dist::nccl {
namespace {
// Every call is in progress at first: an NCCL thread queues it, within about ten microseconds once the ranks are
// connected. A poll costs about 0.1 microseconds, so a call is mostly done before this thread yields, and nearly always
// before it sleeps.
constexpr int kSpins = 200;
constexpr int kYields = 200;
constexpr auto kSleep = std::chrono::microseconds(100);
constexpr std::chrono::milliseconds kLongestFarewell{5000};
}  // namespace

Communicator::Communicator(const Library& library, const UniqueId& id, int rank, int size, Device device,
                           std::chrono::milliseconds timeout, const RankName& name)
    : Communicator(library, device, timeout, name) {
  Config config;
  const Result begun = library_.comm_init_rank_config(&comm_, size, id, rank, &config);
  finish_making("ncclCommInitRankConfig", begun);
}

Communicator::Communicator(const Library& library, Device device, std::chrono::milliseconds timeout,
                           const RankName& name)
    : library_(library), name_(name), device_(device), timeout_(timeout) {}

void Communicator::finish_making(const char* what, Result begun) {
  const Result result = settle(begun, timeout_);
  if (result == Result::Success) return;
  const std::exception_ptr error = error_of(what, result);
  abort();
  std::rethrow_exception(error);
}

std::shared_ptr<Communicator> Communicator::split(int rank, std::chrono::milliseconds timeout, const RankName& name) {
  const bool is_member = rank >= 0;
  std::shared_ptr<Communicator> part(new Communicator(library_, device_, timeout, name));
  try {
    // NCCL sets part->comm_ once this communicator is no longer in progress.
    call("ncclCommSplit", [&](Comm comm) {
      return library_.comm_split(comm, is_member ? 0 : kSplitNoColor, std::max(rank, 0), &part->comm_, nullptr);
    });
  } catch (...) {
    abort();  // before `part`, which NCCL may still write to, is destroyed
    throw;
  }
  if (!is_member) return nullptr;
  part->finish_making("ncclCommSplit", Result::InProgress);
  return part;
}

Communicator::~Communicator() {
  if (!comm_) return;
  if (settle(library_.comm_finalize(comm_), std::min(timeout_, kLongestFarewell)) == Result::Success) {
    library_.comm_destroy(std::exchange(comm_, nullptr));
  } else {
    abort();
  }
}

Result Communicator::settle(Result result, std::chrono::milliseconds longest, const UntilPeersCome& until_peers_come) {
  auto deadline = Clock::now() + longest;
  bool asked_peers = false;
  for (int answers = 1; result == Result::InProgress; ++answers) {
    {
      const std::lock_guard lock(mutex_);
      if (!comm_) return Result::RemoteError;  // aborted by another thread
      const Result asked = library_.comm_get_async_error(comm_, &result);
      if (asked != Result::Success) return asked;
    }
    if (result != Result::InProgress) break;
    const bool is_late = Clock::now() >= deadline;
    // On a busy machine the spins and yields alone may exceed the timeout.
    if (until_peers_come && !asked_peers && (is_late || answers >= kSpins + kYields)) {
      asked_peers = true;
      until_peers_come();
      deadline = Clock::now() + longest;
    } else if (is_late) {
      break;
    }
    pause(answers);
  }
  return result;
}

void Communicator::pause(int answers) {
  if (answers <= kSpins) {
    ++spins_;
  } else if (answers <= kSpins + kYields) {
    ++yields_;
    std::this_thread::yield();
  } else {
    ++sleeps_;
    Unfinished::advance_all();
    std::this_thread::sleep_for(kSleep);
  }
}

std::string Communicator::in_words(const char* what, Result result) {
  const char* const last = library_.get_last_error(comm_);
  return fmt::format("{} failed on rank {} ({}): {}{}{}; NCCL_DEBUG=INFO lets NCCL tell more", what, name_,
                     to_string(device_), library_.get_error_string(result), last && *last ? "; NCCL says: " : "",
                     last ? last : "");
}

std::exception_ptr Communicator::error_of(const char* what, Result result) {
  const std::string text = in_words(what, result);
  if (result == Result::InProgress)
    return std::make_exception_ptr(TimeoutError("{}: not done within {} ms", text, timeout_.count()));
  if (result == Result::RemoteError) return std::make_exception_ptr(PeerError(text));
  return std::make_exception_ptr(DistError(text));
}

void Communicator::call(const char* what, const std::function<Result(Comm)>& function,
                        const UntilPeersCome& until_peers_come) {
  Result result;
  {
    const std::lock_guard lock(mutex_);
    if (!comm_) throw DistError("{}: the communicator of rank {} was aborted", what, name_);
    result = function(comm_);
  }
  result = settle(result, timeout_, until_peers_come);
  if (result == Result::Success) return;
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(error_of(what, result));
}

void Communicator::call_together(const std::function<Result(Comm)>& calls, const UntilPeersCome& until_peers_come) {
  const auto as_group = [&](Comm comm) {
    if (const Result begun = library_.group_start(); begun != Result::Success) return begun;
    Result result = Result::InternalError;
    try {
      result = calls(comm);
    } catch (...) {
      library_.group_end();  // group state belongs to this thread, which may use other communicators
      throw;
    }
    const Result ended = library_.group_end();
    return is_queued(result) ? ended : result;
  };
  call("ncclGroupEnd", as_group, until_peers_come);
}

std::optional<std::string> Communicator::asynchronous_error() {
  const std::lock_guard lock(mutex_);
  if (!comm_) return std::nullopt;
  Result error = Result::Success;
  const Result asked = library_.comm_get_async_error(comm_, &error);
  if (asked != Result::Success) error = asked;
  if (error == Result::Success || error == Result::InProgress) return std::nullopt;
  return in_words("a collective", error);
}

void* Communicator::register_memory(void* data, size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  void* registration = nullptr;
  if (!comm_ || library_.comm_register(comm_, data, bytes, &registration) != Result::Success) return nullptr;
  return registration;
}

void Communicator::deregister(void* registration) noexcept {
  const std::lock_guard lock(mutex_);
  if (comm_ && registration) library_.comm_deregister(comm_, registration);
}

void Communicator::abort() noexcept {
  const std::lock_guard lock(mutex_);
  if (comm_) library_.comm_abort(std::exchange(comm_, nullptr));
}

}  // namespace brigade::dist::nccl
