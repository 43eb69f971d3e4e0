// Posting, advancing and waiting for collectives, by spinning first and then on futexes.
#include <brigade/dist/groups/shm/shared_group.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/dist/groups/arithmetic.h>
#include <brigade/dist/timeline/timeline.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <limits>
#include <thread>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace brigade::dist::shm {

namespace {

constexpr const char* kKindNames[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter", "barrier"};

// Counters wrap around; a difference says who is ahead.
bool reached(uint32_t counter, uint32_t sequence) noexcept { return static_cast<int32_t>(counter - sequence) >= 0; }

void futex_wait(std::atomic<uint32_t>& word, uint32_t value, int64_t nanoseconds) noexcept {
  const timespec timeout{0, nanoseconds};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

void pause_briefly() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

template <size_t N>
void copy_text(char (&target)[N], std::string_view text) noexcept {
  const size_t length = std::min(text.size(), N - 1);
  if (length > 0) std::memcpy(target, text.data(), length);
  target[length] = '\0';
}

void tell(SourceLine& line, const Place& place) noexcept {
  copy_text(line.file, place.file);
  line.line = place.line;
}

Place place_of(const SourceLine& line) { return {line.file, line.line}; }

void tell(Header& header, const CollectiveInfo& info) noexcept {
  copy_text(header.kind, info.kind);
  copy_text(header.op, info.op);
  copy_text(header.dtype, info.dtype);
  header.root = info.root;
  header.count = info.count;
  header.number = info.sequence;
  header.iteration = info.iteration;
  copy_text(header.description, info.description);
  tell(header.where, info.where);
}

CollectiveInfo info_of(const Header& header) {
  CollectiveInfo info;
  info.sequence = header.number;
  info.kind = header.kind;
  info.op = header.op;
  info.dtype = header.dtype;
  info.count = header.count;
  info.root = header.root;
  info.description = header.description;
  info.iteration = header.iteration;
  info.where = place_of(header.where);
  return info;
}

bool same_collective(const Header& a, const Header& b) noexcept {
  return a.count == b.count && a.root == b.root && std::strcmp(a.kind, b.kind) == 0 && std::strcmp(a.op, b.op) == 0 &&
         std::strcmp(a.dtype, b.dtype) == 0 && std::strcmp(a.description, b.description) == 0;
}

// Which of `count` elements are a rank's to reduce: [first, second).
std::pair<int64_t, int64_t> share_of(int rank, int size, int64_t count, DType dtype) {
  // Shares begin on cache lines, so that two ranks write to no cache line in common.
  const int64_t cache_line = 64 / static_cast<int64_t>(itemsize(dtype));
  const int64_t cache_lines = (count + cache_line - 1) / cache_line;
  return {std::min(count, cache_lines * rank / size * cache_line),
          std::min(count, cache_lines * (rank + 1) / size * cache_line)};
}

}  // namespace

class SharedWork final : public Work {
 public:
  SharedWork(SharedGroup& group, SharedGroup::OperationPtr operation)
      : group_(group), operation_(std::move(operation)) {}
  bool is_completed() override {
    if (!done()) {
      try {
        group_.do_progress();
      } catch (...) {
        if (!operation_->error) operation_->error = std::current_exception();
      }
    }
    return done();
  }
  void wait() override { wait(group_.timeout()); }
  void wait(std::chrono::milliseconds timeout) override { group_.wait_for(operation_, timeout); }
  WorkTimes times() const override { return operation_->times; }

 private:
  bool done() const noexcept { return operation_->complete || operation_->error; }

  SharedGroup& group_;
  SharedGroup::OperationPtr operation_;
};

SharedGroup::SharedGroup(int rank, int size, std::chrono::milliseconds timeout, std::shared_ptr<Control> control,
                         RankNames names)
    : ProcessGroup(rank, size, timeout, std::move(names)),
      control_(std::move(control)),
      crowded_(static_cast<unsigned>(size) > std::max(1U, std::thread::hardware_concurrency())) {
  block(rank).pid.store(getpid());
}

SharedGroup::~SharedGroup() {
  forget_staged();
  RankBlock& own = block(rank());
  pending_.clear();
  if (own.status.load() == Status::Running) {
    if (!failure_.empty()) {
      copy_text(own.last_words, failure_);
      own.status.store(Status::Failed);
    } else {
      copy_text(own.last_words,
                std::uncaught_exceptions() > 0 ? "left while an exception was in flight" : "left the group");
      own.status.store(Status::Left);
    }
  }
  futex_wake_all(own.arrived);
  futex_wake_all(own.done);
}

void SharedGroup::keep_pending() {
  for (const OperationPtr& operation : pending_) {
    if (operation->shared.defined()) keep(operation->shared);
  }
}

Tensor SharedGroup::allocate(int64_t numel, DType dtype) {
  if (numel < 0) throw ShapeError("allocate: the number of elements must not be negative, got {}", numel);
  const size_t bytes = checked_bytes(numel, itemsize(dtype));
  auto storage = make_intrusive<Storage>(allocate_shared(bytes), bytes, Device(), control_.get());
  return Tensor(make_intrusive<TensorImpl>(std::move(storage), Shape{numel}, Shape{1}, 0, dtype));
}

void SharedGroup::announce_failure(std::string_view reason) noexcept {
  if (announced_.exchange(true)) return;
  RankBlock& own = block(rank());
  copy_text(own.last_words, reason);
  own.status.store(Status::Failed);
  futex_wake_all(own.arrived);
  futex_wake_all(own.done);
}

void SharedGroup::abort(std::string_view reason) {
  {
    std::lock_guard lock(abort_mutex_);
    if (aborted_) return;
    abort_reason_ = reason;
    aborted_.store(true, std::memory_order_release);
  }
  announce_failure(reason);
}

void SharedGroup::end_pending() {
  for (const OperationPtr& operation : pending_) {
    operation->error = broken_;
    if (operation->shared.defined()) keep(operation->shared);
  }
  pending_.clear();
}

void SharedGroup::notice_abort() {
  if (broken_ || !aborted_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(abort_mutex_);
  broken_ = std::make_exception_ptr(
      DistError("the {} group was aborted on rank {}: {}", backend(), named(rank()), abort_reason_));
  end_pending();
}

void SharedGroup::publish(std::atomic<uint32_t>& counter, uint32_t value) noexcept {
  // Sequentially consistent with the sleepers' announcement in park(): either we see the sleeper or
  // it sees the new value.
  counter.store(value);
  if (block(rank()).sleepers.load() > 0) futex_wake_all(counter);
}

WorkPtr SharedGroup::post(Kind kind, const Tensor& data, const Tensor& output, bool stage_in,
                          const CollectiveOptions& options, std::function<void(std::span<void* const>)> part) {
  notice_abort();
  if (broken_) std::rethrow_exception(broken_);
  auto operation = std::make_shared<Operation>();
  operation->sequence = ++posted_;
  operation->kind = kind;
  Header& header = operation->header;
  const CollectiveInfo recorded = record(kKindNames[static_cast<int>(kind)], data, options);
  tell(header, options.step_of ? *options.step_of : recorded);
  if (data.defined()) {
    header.size = data.numel();
    operation->shared = data;
    operation->output = output;
    if (!locate(data.raw_data(), header.place)) {
      operation->shared = allocate(data.numel(), data.dtype());
      if (!locate(operation->shared.raw_data(), header.place))
        throw DistError("shm: memory of this group cannot be located");
      if (stage_in && data.nbytes() > 0) std::memcpy(operation->shared.raw_data(), data.raw_data(), data.nbytes());
      if (!output.defined()) operation->output = data;
    }
  }
  operation->part = std::move(part);
  // A header may be overwritten once every rank is done with the collective that it described.
  while (operation->sequence > kRing && !pending_.empty() &&
         pending_.front()->sequence <= operation->sequence - kRing) {
    wait_for(OperationPtr(pending_.front()), timeout());  // a copy: the queue drops its own when it completes
  }
  header.posted_at = now_ns();
  block(rank()).ring[operation->sequence % kRing] = header;
  pending_.push_back(operation);
  publish(block(rank()).arrived, operation->sequence);
  advance();
  return std::make_shared<SharedWork>(*this, std::move(operation));
}

bool SharedGroup::advance() {
  bool moved = false;
  for (const OperationPtr& operation : pending_) {
    if (operation->part_done) continue;
    for (int r = 0; r < size(); ++r) {
      if (!reached(block(r).arrived.load(std::memory_order_acquire), operation->sequence)) return moved;
    }
    check_headers(*operation);
    std::array<void*, kMaxRanks> peers{};
    for (int r = 0; r < size(); ++r) {
      const Header& header = block(r).ring[operation->sequence % kRing];
      operation->times.arrived = std::max(operation->times.arrived, header.posted_at);
      if (header.size == 0) continue;
      peers[static_cast<size_t>(r)] = r == rank() ? operation->shared.raw_data() : resolve(r, header.place);
    }
    if (operation->part) operation->part(std::span<void* const>(peers.data(), static_cast<size_t>(size())));
    operation->part_done = true;
    block(rank()).done_at[operation->sequence % kRing] = now_ns();
    publish(block(rank()).done, operation->sequence);
    moved = true;
    // Parts run ahead of completions; complete what is complete.
    break;
  }
  while (!pending_.empty() && pending_.front()->part_done) {
    Operation& oldest = *pending_.front();
    for (int r = 0; r < size(); ++r) {
      if (!reached(block(r).done.load(std::memory_order_acquire), oldest.sequence)) return moved;
    }
    // A rank writes this place again when it is done with the collective kRing later, which waits
    // for this rank.
    for (int r = 0; r < size(); ++r)
      oldest.times.reduced = std::max(oldest.times.reduced, block(r).done_at[oldest.sequence % kRing]);
    complete(oldest);
    pending_.pop_front();
    moved = true;
  }
  return moved;
}

void SharedGroup::complete(Operation& operation) {
  if (operation.output.defined() && operation.kind != Kind::AllGather && operation.kind != Kind::ReduceScatter) {
    if (operation.output.nbytes() > 0)
      std::memcpy(operation.output.raw_data(), operation.shared.raw_data(), operation.output.nbytes());
  }
  operation.complete = true;
  recorder().finish(operation.sequence);
  operation.part = nullptr;
  operation.shared = operation.output = Tensor();
}

void SharedGroup::check_headers(const Operation& operation) {
  const Header& first = block(0).ring[operation.sequence % kRing];
  bool same = true;
  for (int r = 1; r < size(); ++r) {
    const Header& other = block(r).ring[operation.sequence % kRing];
    same = same && same_collective(first, other);
  }
  if (same) return;
  std::vector<CollectiveInfo> by_rank;
  for (int r = 0; r < size(); ++r)
    by_rank.push_back(info_of(block(r).ring[operation.sequence % kRing]));
  Verdict verdict = collective_mismatch(by_rank, names());
  const std::string message = verdict.message;
  fail(std::make_exception_ptr(CollectiveError(message, {std::move(verdict)})));
}

void SharedGroup::fail(std::exception_ptr error) {
  broken_ = error;
  std::string text = "failed";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    text = exception.what();
  }
  write_record(text);
  announce_failure(text);
  end_pending();
  std::rethrow_exception(error);
}

void SharedGroup::note_activity(std::string_view what, SourceLocation where) {
  RankBlock& own = block(rank());
  for (uint32_t free = 0; !own.activity_lock.compare_exchange_weak(free, 1, std::memory_order_acquire); free = 0)
    pause_briefly();  // a peer reads it
  copy_text(own.activity, what);
  tell(own.activity_at, where);
  own.activity_since.store(now_ns(), std::memory_order_relaxed);
  own.activity_lock.store(0, std::memory_order_release);
}

void SharedGroup::do_progress() {
  notice_abort();
  if (broken_) std::rethrow_exception(broken_);
  while (!pending_.empty() && advance()) {
  }
}

int SharedGroup::behind(const Operation& operation, bool& in_arrival) const {
  in_arrival = !operation.part_done;
  for (int r = 0; r < size(); ++r) {
    const std::atomic<uint32_t>& counter = in_arrival ? block(r).arrived : block(r).done;
    if (!reached(counter.load(std::memory_order_acquire), operation.sequence)) return r;
  }
  return -1;
}

void SharedGroup::park(const Operation& operation) {
  bool in_arrival = false;
  const int rank_behind = behind(operation, in_arrival);
  if (rank_behind < 0) return;
  RankBlock& peer = block(rank_behind);
  std::atomic<uint32_t>& counter = in_arrival ? peer.arrived : peer.done;
  peer.sleepers.fetch_add(1);
  const uint32_t value = counter.load();
  if (!reached(value, operation.sequence)) futex_wait(counter, value, 1'000'000);
  peer.sleepers.fetch_sub(1);
}

Whereabouts SharedGroup::whereabouts(int r) const {
  RankBlock& peer = block(r);
  Whereabouts place;
  place.rank = named(r);
  if (const uint32_t arrived = peer.arrived.load(std::memory_order_acquire); arrived > 0) {
    place.last = info_of(peer.ring[arrived % kRing]);
    place.finished = reached(peer.done.load(std::memory_order_acquire), arrived);
  }
  for (int tries = 0; tries < 1000; ++tries) {
    uint32_t free = 0;
    if (!peer.activity_lock.compare_exchange_strong(free, 1, std::memory_order_acquire)) {
      pause_briefly();
      continue;
    }
    place.activity = peer.activity;
    place.activity_at = place_of(peer.activity_at);
    place.activity_seconds = static_cast<double>(now_ns() - peer.activity_since.load(std::memory_order_relaxed)) * 1e-9;
    peer.activity_lock.store(0, std::memory_order_release);
    break;
  }
  return place;
}

void SharedGroup::check_peers(const Operation& operation) {
  bool in_arrival = false;
  if (behind(operation, in_arrival) < 0) return;
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    const std::atomic<uint32_t>& counter = in_arrival ? block(r).arrived : block(r).done;
    // A rank that has done what this collective needs of it may have gone since.
    if (reached(counter.load(std::memory_order_acquire), operation.sequence)) continue;
    if (block(r).status.load(std::memory_order_acquire) == Status::Running && death_of(r).empty()) continue;
    // It may have arrived in the meantime, just before it left.
    if (reached(counter.load(std::memory_order_acquire), operation.sequence)) continue;
    // A rank that failed because of another one leads to that one.
    int lost = r;
    for (int step = 0; step < size(); ++step) {
      const int blamed = block(lost).blames.load(std::memory_order_acquire);
      if (blamed < 0 || blamed == rank()) break;
      lost = blamed;
    }
    const Status status = block(lost).status.load(std::memory_order_acquire);
    std::string how = status == Status::Failed ? fmt::format("failed: {}", block(lost).last_words)
                      : status == Status::Left ? std::string(block(lost).last_words)
                                               : death_of(lost);
    if (how.empty()) how = fmt::format("did not come in time (rank {} waited for it)", named(r));
    const CollectiveInfo waiting = info_of(operation.header);
    Verdict verdict = rank_lost(waiting, whereabouts(lost), how, status == Status::Failed);
    const std::string message = fmt::format("rank {} {}; rank {} was waiting for it in {}; {}", named(lost), how,
                                            named(rank()), in_words(waiting), in_words(whereabouts(lost)));
    block(rank()).blames.store(lost, std::memory_order_release);
    fail(std::make_exception_ptr(DiagnosedAs<PeerError>(message, {std::move(verdict)})));
  }
}

void SharedGroup::wait_for(const OperationPtr& operation, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto finished = [&] {
    notice_abort();
    if (operation->error) std::rethrow_exception(operation->error);
    return operation->complete;
  };
  if (finished()) return;
  if (broken_) std::rethrow_exception(broken_);
  // First without the scheduler (a sleeping thread takes tens of microseconds to wake), then in
  // naps of a millisecond.
  const int spins = crowded_ ? 0 : 4000;
  for (int i = 0; i < spins; ++i) {
    if (!advance()) pause_briefly();
    if (finished()) return;
  }
  for (int i = 0; i < (crowded_ ? 20 : 2); ++i) {
    if (!advance()) sched_yield();
    if (finished()) return;
  }
  const auto deadline = Clock::now() + timeout;
  auto next_check = Clock::now();
  while (true) {
    while (advance()) {
    }
    if (finished()) return;
    const auto now = Clock::now();
    if (now >= next_check) {
      check_peers(*operation);
      next_check = now + std::chrono::milliseconds(2);
    }
    if (now >= deadline) {
      bool in_arrival = false;
      std::vector<Whereabouts> missing;
      std::string ranks;
      if (behind(*operation, in_arrival) >= 0) {
        for (int r = 0; r < size(); ++r) {
          const std::atomic<uint32_t>& counter = in_arrival ? block(r).arrived : block(r).done;
          if (reached(counter.load(), operation->sequence)) continue;
          if (missing.empty()) block(rank()).blames.store(r, std::memory_order_release);
          missing.push_back(whereabouts(r));
          ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", named(r));
        }
      }
      const CollectiveInfo waiting = info_of(operation->header);
      Verdict verdict = collective_timeout(waiting, missing);
      std::string places;
      for (const Whereabouts& place : missing)
        places += "; " + in_words(place);
      fail(std::make_exception_ptr(
          DiagnosedAs<TimeoutError>(fmt::format("timed out after {} ms in {} on rank {}: waiting for rank {}{}",
                                                timeout.count(), in_words(waiting), named(rank()), ranks, places),
                                    {std::move(verdict)})));
    }
    park(*operation);
  }
}

std::pair<int64_t, int64_t> SharedGroup::share(int64_t count, DType dtype) const {
  return share_of(rank(), size(), count, dtype);
}

bool SharedGroup::reaches(const Tensor& tensor) const {
  DataPlace place;
  return locate(tensor.raw_data(), place);
}

WorkPtr SharedGroup::reduce_shares(const Tensor& tensor, const CollectiveOptions& options) {
  const int64_t count = tensor.numel();
  const DType dtype = tensor.dtype();
  return post(Kind::ReduceScatter, tensor, Tensor(), true, options,
              [this, count, dtype, op = options.op](std::span<void* const> peers) {
                const auto [begin, end] = share(count, dtype);
                void* outputs[] = {peers[static_cast<size_t>(rank())]};
                if (begin < end) reduce_elements(peers, outputs, dtype, op, begin, end);
              });
}

WorkPtr SharedGroup::gather_shares(const Tensor& tensor, const CollectiveOptions& options) {
  const int64_t count = tensor.numel();
  const DType dtype = tensor.dtype();
  return post(Kind::AllGather, tensor, Tensor(), true, options, [this, count, dtype](std::span<void* const> peers) {
    char* to = static_cast<char*>(peers[static_cast<size_t>(rank())]);
    for (int r = 0; r < size(); ++r) {
      const auto [begin, end] = share_of(r, size(), count, dtype);
      const size_t skip = static_cast<size_t>(begin) * itemsize(dtype);
      const size_t bytes = static_cast<size_t>(end - begin) * itemsize(dtype);
      if (r != rank() && bytes > 0)
        std::memcpy(to + skip, static_cast<const char*>(peers[static_cast<size_t>(r)]) + skip, bytes);
    }
  });
}

WorkPtr SharedGroup::do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) {
  const int64_t count = tensor.numel();
  const DType dtype = tensor.dtype();
  return post(Kind::AllReduce, tensor, Tensor(), true, options,
              [this, count, dtype, op = options.op](std::span<void* const> peers) {
                const auto [begin, end] = share(count, dtype);
                if (begin < end) reduce_elements(peers, peers, dtype, op, begin, end);
              });
}

WorkPtr SharedGroup::do_broadcast(const Tensor& tensor, const CollectiveOptions& options) {
  const size_t bytes = tensor.nbytes();
  const bool is_root = rank() == options.root;
  return post(Kind::Broadcast, tensor, Tensor(), is_root, options,
              [this, bytes, is_root, root = options.root](std::span<void* const> peers) {
                if (!is_root && bytes > 0)
                  std::memcpy(peers[static_cast<size_t>(rank())], peers[static_cast<size_t>(root)], bytes);
              });
}

WorkPtr SharedGroup::do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) {
  const size_t bytes = input.nbytes();
  return post(Kind::AllGather, input, output, true, options, [output, bytes](std::span<void* const> peers) {
    char* to = static_cast<char*>(output.raw_data());
    for (size_t r = 0; r < peers.size() && bytes > 0; ++r)
      std::memcpy(to + r * bytes, peers[r], bytes);
  });
}

WorkPtr SharedGroup::do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) {
  const int64_t part = output.numel();
  return post(Kind::ReduceScatter, input, output, true, options,
              [this, output, part, op = options.op](std::span<void* const> peers) {
                const auto skip = static_cast<int64_t>(output.itemsize()) * rank() * part;
                std::array<void*, kMaxRanks> inputs{};
                for (size_t r = 0; r < peers.size(); ++r)
                  inputs[r] = static_cast<char*>(peers[r]) + skip;
                void* outputs[] = {output.raw_data()};
                if (part > 0)
                  reduce_elements(std::span<void* const>(inputs.data(), peers.size()), outputs, output.dtype(), op, 0,
                                  part);
              });
}

WorkPtr SharedGroup::do_barrier(const CollectiveOptions& options) {
  return post(Kind::Barrier, Tensor(), Tensor(), false, options, nullptr);
}

}  // namespace brigade::dist::shm
