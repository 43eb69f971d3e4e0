// Posts, advances and waits for collectives. Waits spin first, then sleep on futexes.
#include <brigade/dist/groups/shm/shared_group.h>

#include <brigade/core/clock.h>
#include <brigade/core/factory.h>
#include <brigade/dist/groups/collective_errors.h>
#include <brigade/dist/groups/group_memory.h>
#include <brigade/dist/groups/shm/counter.h>
#include <brigade/dist/groups/shm/rank_status.h>
#include <brigade/dist/groups/slot_sums.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <thread>

namespace brigade::dist::shm {

class SharedWork final : public Work {
 public:
  SharedWork(SharedGroup& group, SharedGroup::OperationPtr operation)
      : group_(group), unfinished_(group.unfinished_), operation_(std::move(operation)) {}
  bool is_completed() override {
    const std::lock_guard lock(unfinished_->mutex());
    if (!done()) {
      try {
        group_.advance_pending();
      } catch (...) {
        if (!operation_->error) operation_->error = std::current_exception();
      }
    }
    return done();
  }
  void wait() override {
    finish([&] { group_.wait_for(operation_, group_.timeout()); });
  }
  void wait(std::chrono::milliseconds timeout) override {
    finish([&] { group_.wait_for(operation_, timeout); });
  }
  WorkTimes times() const override { return operation_->times; }

 private:
  bool done() const noexcept { return operation_->complete || operation_->error; }
  template <class F>
  void finish(F&& wait) {
    const std::lock_guard lock(unfinished_->mutex());
    if (!done()) wait();
    if (operation_->error) std::rethrow_exception(operation_->error);
  }

  SharedGroup& group_;  // valid until the operation is done: the group's destructor ends pending ones
  const std::shared_ptr<Unfinished> unfinished_;
  SharedGroup::OperationPtr operation_;
};

SharedGroup::SharedGroup(int rank, int size, std::chrono::milliseconds timeout, std::shared_ptr<Control> control,
                         RankNames names)
    : ProcessGroup(rank, size, timeout, std::move(names)),
      control_(std::move(control)),
      crowded_(static_cast<unsigned>(size) > std::max(1U, std::thread::hardware_concurrency())) {}

SharedGroup::~SharedGroup() {
  forget_staged();
  // Announced before the memory of pending operations is freed, so that a peer that misses it can report why.
  if (RankBlock& own = block(rank()); own.end.load() == Departure::How::Running) {
    if (!failure_.empty()) {
      leave(own, Departure::How::Failed, failure_);
    } else {
      leave(own,
            by_exception_ || std::uncaught_exceptions() > 0 ? Departure::How::LeftByException : Departure::How::Left);
    }
  }
  for (const OperationPtr& operation : pending_)
    operation->error = group_gone_error();
  pending_.clear();
}

void SharedGroup::keep_pending() {
  for (const OperationPtr& operation : pending_) {
    if (operation->shared.defined()) keep(operation->shared);
  }
}

Tensor SharedGroup::allocate(int64_t numel, DType dtype) {
  return memory_of_group(control_.get(), numel, dtype, Device(),
                         [this](size_t bytes) { return allocate_shared(bytes); });
}

bool SharedGroup::reaches(const Tensor& tensor) const {
  DataPlace place;
  return locate(tensor.raw_data(), place);
}

void SharedGroup::announce_failure(std::string_view reason) noexcept {
  if (!announced_.exchange(true)) leave(block(rank()), Departure::How::Failed, reason);
}

std::string SharedGroup::lost_peer() {
  for (int peer = 0; peer < size(); ++peer) {
    const Departure end = peer == rank() ? Departure() : end_of(block(peer));
    if (end.has_ended()) return fmt::format("rank {} {}", named(peer), in_words(end));
  }
  return "";
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

WorkPtr SharedGroup::post(CollectiveKind kind, const Tensor& data, const Tensor& output, bool stage_in,
                          const CollectiveOptions& options, std::function<void(std::span<void* const>)> part) {
  const std::lock_guard lock(unfinished_->mutex());
  notice_abort();
  if (broken_) std::rethrow_exception(broken_);
  auto operation = std::make_shared<Operation>();
  operation->sequence = ++posted_;
  operation->kind = kind;
  operation->op = options.op;
  Header& header = operation->header;
  if (options.slot_sums) options.slot_sums->set_taken(false);
  const CollectiveInfo recorded = record(kind, data, options);
  if (data.defined()) {
    header.size = data.numel();
    operation->shared = data;
    operation->output = output;
    if (!locate(data.raw_data(), header.place)) {
      // Pieces need every rank repeatedly: when ranks share processors, each piece would wait for all of them to be
      // scheduled.
      header.in_pieces = kind == CollectiveKind::AllReduce && !crowded_ && data.nbytes() > StagedReduction::kFrom;
      const size_t room = header.in_pieces ? StagedReduction::kRoomBytes : data.nbytes();
      operation->shared = allocate(static_cast<int64_t>(room / data.itemsize()), data.dtype());
      if (!locate(operation->shared.raw_data(), header.place))
        throw DistError("shm: memory of this group cannot be located");
      if (stage_in && !header.in_pieces && room > 0) std::memcpy(operation->shared.raw_data(), data.raw_data(), room);
      if (!output.defined()) operation->output = data;
    } else if (options.slot_sums && kind == CollectiveKind::AllReduce && options.slot_sums->are_of(data)) {
      operation->sums = options.slot_sums;
      header.measured_slots = static_cast<uint32_t>(options.slot_sums->slots());
    }
  }
  operation->part = std::move(part);
  // A header may be overwritten once every rank is done with the collective that it described.
  while (operation->sequence > kRing && !pending_.empty() &&
         pending_.front()->sequence <= operation->sequence - kRing) {
    wait_for(OperationPtr(pending_.front()), timeout());  // a copy: the queue drops its own when it completes
  }
  RankBlock& own = block(rank());
  tell(header, own.texts[operation->sequence % kRing], options.step_of ? *options.step_of : recorded);
  header.posted_at = now_ns();
  header.activity = own.activity.load(std::memory_order_relaxed);
  own.ring[operation->sequence % kRing] = header;
  pending_.push_back(operation);
  if (pending_.size() == 1) unfinished_->begin([this] { return advance_quietly(); });
  publish(own, own.arrived, operation->sequence);
  advance();
  return std::make_shared<SharedWork>(*this, std::move(operation));
}

bool SharedGroup::advance() {
  bool moved = false;
  for (const OperationPtr& operation : pending_) {
    if (operation->part_done) continue;
    // Not returned: earlier operations are still completed below, even if a rank never arrives at this one.
    if (behind({&RankBlock::arrived, operation->sequence}) >= 0) break;
    if (work_on(*operation)) moved = true;
    if (!operation->part_done) break;
    block(rank()).done_at[operation->sequence % kRing] = now_ns();
    publish(block(rank()), block(rank()).done, operation->sequence);
    // Parts run ahead of completions, which follow below.
    break;
  }
  while (!pending_.empty() && pending_.front()->part_done) {
    Operation& oldest = *pending_.front();
    for (int r = 0; r < size(); ++r) {
      if (!reached(block(r).done, oldest.sequence)) return moved;
    }
    // A rank overwrites this done_at only in the collective kRing later, which waits for this rank.
    for (int r = 0; r < size(); ++r)
      oldest.times.reduced = std::max(oldest.times.reduced, block(r).done_at[oldest.sequence % kRing]);
    complete(oldest);
    pending_.pop_front();
    moved = true;
  }
  return moved;
}

bool SharedGroup::work_on(Operation& operation) {
  if (!operation.pieces) {
    check_headers(operation);
    std::array<void*, kMaxRanks> room{};
    const std::span<void*> peers = std::span(room).first(static_cast<size_t>(size()));
    bool in_pieces = false;
    for (int r = 0; r < size(); ++r) {
      const Header& header = block(r).ring[operation.sequence % kRing];
      operation.times.arrived = std::max(operation.times.arrived, header.posted_at);
      if (header.size == 0) continue;
      peers[static_cast<size_t>(r)] = r == rank() ? operation.shared.raw_data() : reach(r, operation, header.place);
      in_pieces = in_pieces || header.in_pieces;
    }
    if (!in_pieces) {
      if (operation.sums) operation.sums->set_taken(all_measure(operation));
      if (operation.part) operation.part(peers);
      operation.part_done = true;
      return true;
    }
    begin_pieces(operation, peers);
  }
  const bool moved = operation.pieces->advance();
  operation.part_done = operation.pieces->done();
  if (operation.part_done) pieces_ += operation.pieces->pieces();
  return moved;
}

bool SharedGroup::all_measure(const Operation& operation) {
  bool all = true;
  for (int r = 0; r < size(); ++r)
    all = all && block(r).ring[operation.sequence % kRing].measured_slots == operation.header.measured_slots;
  return all;
}

void SharedGroup::begin_pieces(Operation& operation, std::span<void* const> peers) {
  std::vector<StagedReduction::Source> sources;
  for (size_t r = 0; r < peers.size(); ++r)
    sources.push_back(
        {static_cast<char*>(peers[r]), block(static_cast<int>(r)).ring[operation.sequence % kRing].in_pieces});
  const Tensor& own = operation.header.in_pieces ? operation.output : operation.shared;
  operation.pieces.emplace(*control_, rank(), std::move(sources), own, operation.op, pieces_);
}

void* SharedGroup::reach(int r, const Operation& operation, const DataPlace& place) {
  try {
    return resolve(r, place);
  } catch (const DistError&) {
    // A rank that posts and leaves frees its memory, but announces its departure first.
    if (is_gone(r)) lose(r, operation);
    throw;
  }
}

void SharedGroup::complete(Operation& operation) {
  if (operation.output.defined() && operation.kind != CollectiveKind::AllGather &&
      operation.kind != CollectiveKind::ReduceScatter && !operation.pieces) {
    if (operation.output.nbytes() > 0)
      std::memcpy(operation.output.raw_data(), operation.shared.raw_data(), operation.output.nbytes());
  }
  operation.complete = true;
  recorder().finish(operation.sequence);
  operation.part = nullptr;
  operation.sums.reset();
  operation.pieces.reset();
  operation.shared = operation.output = Tensor();
}

void SharedGroup::check_headers(const Operation& operation) {
  const Header& first = block(0).ring[operation.sequence % kRing];
  bool same = true;
  for (int r = 1; r < size(); ++r) {
    const Header& other = block(r).ring[operation.sequence % kRing];
    same = same && first.id == other.id;
  }
  if (same) return;
  std::vector<RankStatus> by_rank;
  for (int r = 0; r < size(); ++r)
    by_rank.push_back(rank_status_at(block(r), named(r), operation.sequence));
  fail(std::make_exception_ptr(mismatch_error(by_rank, recorder(), names())));
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

void SharedGroup::do_note_activity(const RankActivity& activity) {
  // After a failure the activity at that time is kept, since peers may read it a moment later.
  if (!broken_) shm::note_activity(block(rank()), activity);
}

void SharedGroup::do_progress() {
  const std::lock_guard lock(unfinished_->mutex());
  advance_pending();
}

void SharedGroup::advance_pending() {
  notice_abort();
  if (broken_) std::rethrow_exception(broken_);
  while (!pending_.empty() && advance()) {
  }
}

bool SharedGroup::advance_quietly() noexcept try {
  advance_pending();
  return !pending_.empty();
} catch (...) {
  return false;  // the collectives keep the error
}

Awaited SharedGroup::awaited(const Operation& operation) const noexcept {
  if (operation.part_done) return {&RankBlock::done, operation.sequence};
  for (const OperationPtr& pending : pending_) {
    // No operation after it can advance.
    if (pending->pieces && !pending->part_done) return pending->pieces->awaited();
  }
  return {&RankBlock::arrived, operation.sequence};
}

int SharedGroup::behind(const Awaited& awaited) const {
  for (int r = 0; r < size(); ++r) {
    if (!reached(block(r).*awaited.counter, awaited.value)) return r;
  }
  return -1;
}

void SharedGroup::park(const Operation& operation) {
  const Awaited wanted = awaited(operation);
  const int rank_behind = behind(wanted);
  if (rank_behind < 0) return;
  RankBlock& peer = block(rank_behind);
  const std::atomic<uint32_t>& counter = peer.*wanted.counter;
  const int64_t begin = now_ns();
  sleep_on(peer, peer.*wanted.counter, wanted.value);
  int64_t woken = begin + kNapNs;
  if (reached(counter, wanted.value)) {
    if (wanted.counter == &RankBlock::arrived) woken = peer.ring[wanted.value % kRing].posted_at;
    if (wanted.counter == &RankBlock::done) woken = peer.done_at[wanted.value % kRing];
  }
  if (woken > begin) note_wake(now_ns() - woken);
}

RankStatus SharedGroup::rank_status(int r) const { return rank_status_of(block(r), named(r)); }

void SharedGroup::check_peers(const Operation& operation) {
  const Awaited wanted = awaited(operation);
  if (behind(wanted) < 0) return;
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    const std::atomic<uint32_t>& counter = block(r).*wanted.counter;
    // A rank that has already done its part may have left since.
    if (reached(counter, wanted.value)) continue;
    if (!is_gone(r)) continue;
    // It may have arrived just before it left.
    if (reached(counter, wanted.value)) continue;
    lose(r, operation);
  }
}

bool SharedGroup::is_gone(int r) {
  return block(r).end.load(std::memory_order_acquire) != Departure::How::Running || death_of(r).has_ended();
}

void SharedGroup::lose(int r, const Operation& operation) {
  // Follows the blame from rank to rank to the root cause.
  int lost = r;
  for (int step = 0; step < size(); ++step) {
    const int blamed = block(lost).blames.load(std::memory_order_acquire);
    if (blamed < 0 || blamed == rank()) break;
    lost = blamed;
  }
  Departure end = end_of(block(lost));
  if (block(lost).blames.load(std::memory_order_acquire) == rank())
    end = {Departure::How::GaveUp, "gave up waiting for this rank"};
  if (!end.has_ended()) end = death_of(lost);
  if (!end.has_ended())
    end = {Departure::How::Unknown, fmt::format("did not come in time (rank {} waited for it)", named(r))};
  block(rank()).blames.store(lost, std::memory_order_release);
  fail(std::make_exception_ptr(
      lost_rank_error({named(rank()), info_of(block(rank()), operation.sequence)}, rank_status(lost), end)));
}

void SharedGroup::time_out(const Operation& operation, std::chrono::milliseconds waited) {
  const Awaited wanted = awaited(operation);
  std::vector<RankStatus> missing;
  for (int r = 0; r < size(); ++r) {
    if (reached(block(r).*wanted.counter, wanted.value)) continue;
    if (missing.empty()) block(rank()).blames.store(r, std::memory_order_release);
    missing.push_back(rank_status(r));
  }
  fail(std::make_exception_ptr(missing_ranks_error({named(rank()), info_of(block(rank()), operation.sequence)}, missing,
                                                   fmt::format("timed out after {} ms", waited.count()))));
}

void SharedGroup::end_waits_when(std::function<bool()> ends, std::chrono::milliseconds period) {
  ends_waits_ = std::move(ends);
  ends_waits_period_ = period;
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
  for (Pauses pauses(crowded_);;) {
    if (advance()) {
      pauses.restart();
    } else if (!pauses.next()) {
      break;
    }
    if (finished()) return;
  }
  const auto deadline = Clock::now() + timeout;
  auto next_check = Clock::now();
  auto next_question = Clock::now() + ends_waits_period_;
  while (true) {
    while (advance()) {
    }
    if (finished()) return;
    const auto now = Clock::now();
    if (now >= next_check) {
      check_peers(*operation);
      next_check = now + std::chrono::milliseconds(2);
    }
    bool ends = now >= deadline;
    if (!ends && ends_waits_ && now >= next_question) {
      ends = ends_waits_();
      next_question = now + ends_waits_period_;
    }
    if (ends) time_out(*operation, timeout);
    Unfinished::advance_all(unfinished_.get());
    park(*operation);
  }
}

}  // namespace brigade::dist::shm
