// The gloo backend: ranks on any hosts, over TCP. Gloo's calls block, so one thread per group runs them in order.
//
// Reductions are not Gloo's own (collectives.h), so that results are bitwise equal to those of the other
// transports. Gloo accepts any bytes, and terminates the process when sizes differ. So before each collective a rank
// exchanges a digest of it with its neighbors in a ring (BRIGADE_COLLECTIVE_CHECK=0 disables this). When a collective
// fails, each rank publishes its status through the store and reads that of the others (rank_status.h), so that all
// ranks report the same ranks.
#include <brigade/core/clock.h>
#include <brigade/core/factory.h>
#include <brigade/dist/groups/chain.h>
#include <brigade/dist/groups/collective_errors.h>
#include <brigade/dist/groups/gloo/collectives.h>
#include <brigade/dist/groups/gloo/connect.h>
#include <brigade/dist/groups/gloo/messages.h>
#include <brigade/dist/groups/gloo/rank_status.h>
#include <brigade/dist/groups/group_memory.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/subgroup.h>
#include <brigade/dist/groups/work_queue.h>

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>

namespace brigade::dist {
namespace {

class GlooGroup final : public ChainGroup {
 public:
  GlooGroup(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
            const std::string& prefix, RankNames names)
      : ChainGroup(rank, size, timeout, std::move(names)),
        store_(store),
        prefix_(prefix),
        context_(connect_gloo(store, prefix, rank, size, timeout, this->names())) {
    check_ = size > 1 && compares_collectives();
    if (check_) {
      sent_ = context_->createUnboundBuffer(&own_digest_, sizeof own_digest_);
      received_ = context_->createUnboundBuffer(&other_digest_, sizeof other_digest_);
    }
    queue_.emplace(timeout);
    rank_status_.emplace(std::move(store), prefix, rank, size, this->names());
    rank_status_->while_waiting([this](bool given_up_elsewhere) {
      if (given_up_elsewhere) end_waits();
      waiting_.end_if_peer_is_gone([this](int peer) { return context_->is_gone(peer); });
    });
  }

  ~GlooGroup() override {
    end_channels();
    forget_staged();
    const bool in_trouble = failed_ || !failure_.empty() || std::uncaught_exceptions() > 0;
    if (!failed_) {
      rank_status_->leave(!failure_.empty()             ? Departure{Departure::How::Failed, failure_}
                          : in_trouble || by_exception_ ? Departure{Departure::How::LeftByException, ""}
                                                        : Departure{Departure::How::Left, ""});
    }
    queue_.reset();
    if (!in_trouble) return;
    context_->break_connections();
    rank_status_->stay_for_others();
  }

  const char* backend() const noexcept override { return "gloo"; }
  ProcessGroupPtr make_subgroup(const Subgroup& members) override {
    if (!members.is_member()) return nullptr;
    return make_gloo_group(store_, members.rank, members.size(), members.timeout, prefix_of(prefix_, members),
                           members.names);
  }
  ProcessGroupPtr make_channel(const Subgroup& members) override { return make_subgroup(members); }
  using ProcessGroup::allocate;
  Tensor allocate(int64_t numel, DType dtype) override {
    return memory_of_group(context_.get(), numel, dtype, Device(), cpu_allocate);
  }
  void do_note_activity(const RankActivity& activity) override { rank_status_->note_activity(activity); }
  void note_failure(std::string_view reason) override { failure_ = reason; }
  void note_exception(bool has_ended) override { by_exception_ = has_ended; }

  WorkPtr reduce_along(Chain chain, const Tensor& tensor, const CollectiveOptions& options) override {
    return enqueue(
        CollectiveKind::AllReduce, tensor, options,
        [this, chain = std::move(chain), tensor](uint64_t number) { run_chain(messages(number), chain, tensor); });
  }

  void abort(std::string_view reason) override {
    {
      const std::lock_guard lock(abort_mutex_);
      if (failed_.exchange(true)) return;
      aborted_ = true;
      abort_reason_ = reason;
    }
    rank_status_->abort(std::string(reason));
    end_waits();
  }

 protected:
  WorkPtr do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) override {
    return enqueue(CollectiveKind::AllReduce, tensor, options, [this, tensor, op = options.op](uint64_t number) {
      reduce_everywhere(messages(number), tensor, op);
    });
  }
  WorkPtr do_broadcast(const Tensor& tensor, const CollectiveOptions& options) override {
    return enqueue(CollectiveKind::Broadcast, tensor, options, [this, tensor, root = options.root](uint64_t number) {
      tree_broadcast(messages(number), tensor, root);
    });
  }
  WorkPtr do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return enqueue(CollectiveKind::AllGather, input, options,
                   [this, output, input](uint64_t number) { direct_all_gather(messages(number), output, input); });
  }
  WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return enqueue(CollectiveKind::ReduceScatter, input, options,
                   [this, output, input, op = options.op](uint64_t number) {
                     reduce_own_part(messages(number), output, input, op);
                   });
  }
  WorkPtr do_barrier(const CollectiveOptions& options) override {
    return enqueue(CollectiveKind::Barrier, Tensor(), options,
                   [this](uint64_t number) { dissemination_barrier(messages(number)); });
  }

 private:
  using Run = std::function<void(uint64_t number)>;

  // Ends the waits of this rank and, because its connections close, those of its peers.
  void end_waits() noexcept {
    context_->break_connections();
    waiting_.end();
  }

  Messages messages(uint64_t number) const { return {*context_, waiting_, number, timeout(), own_digest_}; }

  WorkPtr enqueue(CollectiveKind kind, const Tensor& tensor, const CollectiveOptions& options, Run run) {
    const CollectiveInfo recorded = record(kind, tensor, options);
    const CollectiveInfo info = options.step_of ? *options.step_of : recorded;
    if (failed_) give_up(info, "the group failed before");
    rank_status_->post(info);
    const bool empty = tensor.defined() && tensor.numel() == 0;
    std::function<void(WorkTimes&)> job;
    if (size() > 1) {
      job = [this, run = empty ? Run() : std::move(run), info, number = recorded.sequence](WorkTimes& times) {
        run_checked(run, info, number, times);
      };
    } else {
      job = [run = std::move(run), number = recorded.sequence](WorkTimes& times) {
        times.arrived = now_ns();
        run(number);
      };
    }
    return queue_->post(in_words(info), std::move(job),
                        [this, info](std::chrono::milliseconds waited) { give_up(info, "timed out", waited); });
  }

  // Runs on the worker thread.
  void run_checked(const Run& run, const CollectiveInfo& info, uint64_t number, WorkTimes& times) {
    try {
      if (failed_) throw std::runtime_error("the group failed before");
      if (check_) {
        check_neighbour(info, number);
        // With two ranks the neighbor is the only peer; with more, no rank can know when the last one arrived.
        if (size() == 2) times.arrived = now_ns();
      }
      if (run) run(number);
      recorder().finish(number);
      rank_status_->finish(info);
    } catch (const Mismatch&) {
      give_up(info, "ranks met in different collectives");
    } catch (const TimeoutError& error) {
      give_up(info, error.what(), timeout());
    } catch (const std::exception& error) {
      give_up(info, error.what());  // Gloo throws several types
    }
  }

  struct Mismatch {};

  // Compares digests around a ring: if every rank agrees with its left neighbor, all ranks agree.
  void check_neighbour(const CollectiveInfo& info, uint64_t number) {
    CollectiveId id = info.id();
    id.sequence = number;
    own_digest_ = id.digest();
    const Messages digests = messages(number);
    const uint64_t slot = digests.slot(Messages::kDigest);
    const int left = (rank() + size() - 1) % size();
    const int right = (rank() + 1) % size();
    received_->recv(left, slot);
    sent_->send(right, slot);
    digests.wait_sent(*sent_, right);
    digests.wait_received(*received_, left);
    if (other_digest_ != own_digest_) throw Mismatch();
  }

  // How long this rank waited, if it gives up because of a timeout.
  using TimedOutAfter = std::optional<std::chrono::milliseconds>;

  // Publishes this rank's status, reads that of the others, and throws the resulting error.
  [[noreturn]] void give_up(const CollectiveInfo& info, const std::string& what, TimedOutAfter waited = {}) {
    // Later failures are consequences of the first one.
    const std::lock_guard lock(give_up_mutex_);
    if (!first_error_) {
      try {
        find_out(info, what, waited);
      } catch (...) {
        first_error_ = std::current_exception();
      }
    }
    std::rethrow_exception(first_error_);
  }
  [[noreturn]] void find_out(const CollectiveInfo& info, const std::string& what, TimedOutAfter waited) {
    {
      const std::lock_guard lock(abort_mutex_);
      failed_ = true;
      if (aborted_)
        throw DistError("the gloo group was aborted on rank {}: {}; it was in {}", named(rank()), abort_reason_,
                        in_words(info));
    }
    rank_status_->give_up(info, waited.has_value());
    context_->break_connections();
    const StatusOfAll told = rank_status_->gather(info, waited.has_value());
    const std::string time_out = !told.timed_out ? ""
                                 : waited        ? fmt::format("timed out after {} ms", waited->count())
                                                 : std::string("a peer timed out");
    const std::exception_ptr error = common_error({named(rank()), info}, what, time_out, told);
    rank_status_->has_read();
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& found) {
      write_record(found.what());
      throw;
    }
  }

  // The same error on all ranks: the one found by the first rank, except on ranks that it blames.
  std::exception_ptr common_error(const WaitingRank& waiting, const std::string& what, const std::string& time_out,
                                  const StatusOfAll& told) const {
    const auto own_words = [&] {
      try {
        throw_common(waiting, what, time_out, told);
      } catch (...) {
        return std::current_exception();
      }
    };
    if (is_missed(told.ranks)) return own_words();
    bool is_first = false;
    const std::optional<FoundOut> found = rank_status_->found_out_elsewhere(is_first);
    if (found && !found->verdicts.empty()) {
      const Verdict& verdict = found->verdicts.front();
      const bool is_blamed = std::ranges::find(verdict.ranks, waiting.rank.number) != verdict.ranks.end();
      if (!is_blamed || verdict.kind == "collective_mismatch")
        return reported_error(waiting, named(found->by), found->text, found->verdicts);
    }
    const std::exception_ptr error = own_words();
    if (!is_first) return error;
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& own) {
      rank_status_->tell_found({rank(), own.what(), verdicts_of(own)});
    }
    return error;
  }

  // Whether some rank has given up waiting for this rank, while this rank has given up on none.
  bool is_missed(const std::vector<PublishedStatus>& told) const {
    return told[static_cast<size_t>(rank())].late.empty() &&
           std::ranges::any_of(told, [&](const PublishedStatus& each) {
             return std::ranges::any_of(each.late, [&](const LateRank& one) { return one.place == rank(); });
           });
  }

  // Throws the error that follows from the status of all ranks, the same on all of them. `time_out`: its text, when
  // this rank or a peer gave up waiting.
  [[noreturn]] void throw_common(const WaitingRank& waiting, const std::string& what, const std::string& time_out,
                                 const StatusOfAll& status_of_all) const {
    const std::vector<PublishedStatus>& told = status_of_all.ranks;
    const auto own = static_cast<size_t>(rank());
    // Status of the ranks that were missing when some rank gave up; they may have arrived since, too late.
    std::vector<const RankStatus*> late(told.size());
    for (const PublishedStatus& each : told) {
      for (const LateRank& one : each.late) {
        const RankStatus*& there = late.at(static_cast<size_t>(one.place));
        if (!there) there = &one.rank_status;
      }
      // A rank on which a peer gave up reports that, unless it gave up waiting itself.
      if (told[own].late.empty() && late[own])
        throw lost_rank_error(waiting, each.rank_status, {Departure::How::GaveUp, "gave up waiting for this rank"});
    }
    late[own] = nullptr;
    std::vector<RankStatus> missing;
    for (size_t r = 0; r < told.size(); ++r) {
      if (late[r] && told[r].gone.how != Departure::How::Died) {
        missing.push_back(*late[r]);
      } else if (told[r].gone.has_ended()) {
        // A rank that left or threw is the root cause.
        throw lost_rank_error(waiting, told[r].rank_status, told[r].gone);
      }
    }
    if (!missing.empty()) throw missing_ranks_error(waiting, missing, time_out.empty() ? "a peer timed out" : time_out);
    if (const auto& host = status_of_all.gone_with_store; host && host->global != waiting.rank.global) {
      RankStatus gone{.rank = *host};
      gone.unasked = "the store, which it hosted, is gone with it";
      throw lost_rank_error(waiting, gone, {Departure::How::Unknown, "left or died"});
    }
    // If the status of several ranks could not be read, none of them is more suspect than the others.
    const auto unasked = std::find_if(told.begin(), told.end(),
                                      [](const PublishedStatus& each) { return !each.rank_status.unasked.empty(); });
    if (unasked != told.end() && size() > 2) {
      const std::string text = fmt::format("{} in {} on rank {}; where the other ranks are is not known: {}",
                                           time_out.empty() ? what : time_out, in_words(waiting.collective),
                                           waiting.rank, unasked->rank_status.unasked);
      if (time_out.empty()) throw PeerError(text);
      throw TimeoutError(text);
    }
    std::vector<RankStatus> by_rank;
    for (const PublishedStatus& each : told) {
      if (!each.stuck) missing.push_back(each.rank_status);
      by_rank.push_back(each.rank_status);
    }
    if (missing.empty()) {
      const CollectiveInfo& first = by_rank[0].last;
      const bool differ = std::any_of(by_rank.begin(), by_rank.end(), [&](const RankStatus& each) {
        return each.last.sequence == first.sequence && !each.last.matches(first);
      });
      if (differ) throw mismatch_error(by_rank, flight_recorder(), names());
      throw PeerError("connections were lost in {} on rank {}: {}", in_words(waiting.collective), waiting.rank, what);
    }
    if (!time_out.empty()) throw missing_ranks_error(waiting, missing, time_out);
    throw lost_rank_error(waiting, missing.front(), {Departure::How::Unknown, "died or lost its connection"}, what);
  }

  const std::shared_ptr<Store> store_;
  const std::string prefix_;
  std::shared_ptr<JoinedContext> context_;
  mutable Waiting waiting_;
  std::optional<StoredRankStatus> rank_status_;
  std::optional<WorkQueue> queue_;
  std::atomic<bool> failed_{false};
  std::mutex abort_mutex_;
  bool aborted_ = false;
  std::string abort_reason_;
  std::string failure_;
  bool by_exception_ = false;

  bool check_ = false;
  uint64_t own_digest_ = 0;
  uint64_t other_digest_ = 0;
  std::unique_ptr<gloo::transport::UnboundBuffer> sent_;
  std::unique_ptr<gloo::transport::UnboundBuffer> received_;

  std::mutex give_up_mutex_;
  std::exception_ptr first_error_;
};

}  // namespace

std::shared_ptr<ChainGroup> make_gloo_chain(std::shared_ptr<Store> store, int rank, int size,
                                            std::chrono::milliseconds timeout, const std::string& prefix,
                                            const RankNames& names) {
  return std::make_shared<GlooGroup>(std::move(store), rank, size, timeout, prefix, names);
}

ProcessGroupPtr make_gloo_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                const std::string& prefix, const RankNames& names) {
  return make_gloo_chain(std::move(store), rank, size, timeout, prefix, names);
}

}  // namespace brigade::dist
