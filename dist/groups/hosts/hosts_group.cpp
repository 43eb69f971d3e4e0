// Ranks on several hosts. Memory is faster than a network, so each byte crosses the network as
// seldom as possible:
//
//   all_reduce on hosts of k ranks each: rank i of every host has a share of the elements, which it
//   adds over the ranks of its host, in shared memory. It begins with the sums that the rank i of
//   the host before has got so far, and hands its own to the rank i of the next, over Gloo (k such
//   chains at the same time, each with 1/k of the bytes); the last host's are the result, which
//   goes back along the chain; the ranks of a host copy each other's shares.
//
// So the sums are those of one host, bit for bit: in rank order, in float for half types. A host
// whose ranks are not consecutive adds several times, once for each run of consecutive ranks.
// Hosts with different numbers of ranks have no common shares: their first ranks, the leaders, have
// everything as their share. The other collectives are rare in training and go by the leaders too.
//
// The steps block, so one thread takes the collectives in posting order. A collective has the
// group's timeout for all its steps together (the last ones a little more, see patience). The steps
// say which collective they are a step of,
// so that both groups compare that and errors speak of it. When a step fails, the rank says why in
// the store, then breaks both of its groups: so the others on its host and its partners on other
// hosts stop at once, and give the same verdict.
#include <brigade/core/view.h>
#include <brigade/dist/diagnosis/collective.h>
#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/groups/arithmetic.h>
#include <brigade/dist/groups/chain.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/shm/shared_group.h>
#include <brigade/dist/groups/work_queue.h>
#include <brigade/dist/meeting/rank_hosts.h>
#include <brigade/dist/meeting/store.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace brigade::dist {

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// A posted collective, and until when it may take.
struct Call {
  CollectiveOptions options;  // its description is that of `info`
  CollectiveInfo info;
  Milliseconds timeout{0};
  Clock::time_point deadline;

  // For a step of it.
  CollectiveOptions step(ReduceOp op = ReduceOp::Sum, int root = 0) const {
    CollectiveOptions result = options;
    result.op = op;
    result.root = root;
    result.step_of = &info;
    return result;
  }
  CollectiveOptions step_from(int root) const { return step(ReduceOp::Sum, root); }
  Milliseconds left() const {
    return std::max(Milliseconds(1), std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()));
  }
};

// What a rank tells the others of its failure: the verdicts of its error, or only how it went
// ("failed: ...").
struct Reason {
  int rank = 0;
  std::string text;
  std::vector<Verdict> verdicts;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Reason, rank, text, verdicts)

std::vector<Verdict> verdicts_of(const std::exception& error) {
  const auto* diagnosed = dynamic_cast<const Diagnosed*>(&error);
  return diagnosed ? diagnosed->verdicts() : std::vector<Verdict>();
}

// Each later step waits a little longer, so that those who can see who is missing speak first.
Milliseconds patience(Milliseconds timeout) { return std::min(timeout / 4, Milliseconds(2000)); }

// Ranks that follow each other and share a host.
struct Run {
  int host = 0;
  std::vector<int> ranks;  // by their places on the host
};

// All ranks in their order.
std::vector<Run> runs_of(const HostLayout& layout, int size) {
  std::vector<std::pair<int, int>> place(static_cast<size_t>(size));  // host and place of each rank
  for (size_t host = 0; host < layout.hosts.size(); ++host) {
    for (size_t i = 0; i < layout.hosts[host].size(); ++i)
      place[static_cast<size_t>(layout.hosts[host][i])] = {static_cast<int>(host), static_cast<int>(i)};
  }
  std::vector<Run> runs;
  for (const auto& [host, local] : place) {
    if (runs.empty() || runs.back().host != host) runs.push_back({host, {}});
    runs.back().ranks.push_back(local);
  }
  return runs;
}

class HostsGroup final : public ProcessGroup {
 public:
  HostsGroup(std::shared_ptr<Store> store, int rank, int size, Milliseconds timeout, const std::string& prefix,
             HostLayout layout)
      : ProcessGroup(rank, size, timeout),
        store_(std::move(store)),
        cause_key_(prefix + "/hosts/cause"),
        layout_(std::move(layout)),
        runs_(runs_of(layout_, size)),
        queue_(timeout) {
    for (const Run& run : runs_)
      chain_.push_back(run.host);
    const std::vector<int>& mine = layout_.hosts[static_cast<size_t>(layout_.host)];
    inside_ = shm::make_group_of_processes(store_, layout_.local, static_cast<int>(mine.size()), timeout,
                                           fmt::format("{}/hosts/inside{}", prefix, layout_.host), mine);
    token_ = inside_->allocate(1, kInt32);
    *token_.data_ptr<int32_t>() = 0;
    if (layout_.hosts.size() == 1 || (!layout_.even() && !leads())) return;
    std::vector<int> partners;
    for (const std::vector<int>& ranks : layout_.hosts)
      partners.push_back(ranks[static_cast<size_t>(layout_.local)]);
    for (const int partner : partners) {
      if (partner != rank) partners_ += fmt::format("{}{}", partners_.empty() ? "" : ", ", partner);
    }
    between_ = make_gloo_chain(store_, layout_.host, static_cast<int>(partners.size()), timeout + patience(timeout),
                               fmt::format("{}/hosts/between{}", prefix, layout_.local), partners);
    // Who fails in the first collective must not break connections that others are still making.
    between_->barrier({.description = "rendezvous"});
  }

  ~HostsGroup() override {
    forget_staged();
    // Works that nobody will wait for any more must not keep the peers waiting.
    if (queue_.idle()) return;
    if (!failure_.empty()) {
      abort(failure_);
    } else if (std::uncaught_exceptions() > 0) {
      abort("left while an exception was in flight");
    }
  }

  const char* backend() const noexcept override { return "hosts"; }
  using ProcessGroup::allocate;
  Tensor allocate(int64_t numel, DType dtype) override { return inside_->allocate(numel, dtype); }

  void note_activity(std::string_view what, SourceLocation where) override {
    inside_->note_activity(what, where);
    if (between_) between_->note_activity(what, where);
  }
  void note_failure(std::string_view reason) override {
    failure_ = reason;
    inside_->note_failure(reason);
    if (between_) between_->note_failure(reason);
  }
  void abort(std::string_view reason) override {
    break_with(std::make_exception_ptr(DistError("the hosts group was aborted on rank {}: {}", rank(), reason)),
               std::string(reason), {rank(), fmt::format("failed: {}", reason), {}});
  }

 protected:
  WorkPtr do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) override {
    return enqueue("all_reduce", tensor, options, [this, tensor](const Call& call) { all_reduce_now(tensor, call); });
  }
  WorkPtr do_broadcast(const Tensor& tensor, const CollectiveOptions& options) override {
    return enqueue("broadcast", tensor, options, [this, tensor](const Call& call) { broadcast_now(tensor, call); });
  }
  WorkPtr do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return enqueue("all_gather", input, options,
                   [this, output, input](const Call& call) { all_gather_now(output, input, call); });
  }
  WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return enqueue("reduce_scatter", input, options, [this, output, input](const Call& call) {
      // By way of an all-reduce: twice the traffic of the best algorithm, and the same bits.
      const Tensor whole = inside_->allocate(input.numel(), input.dtype());
      std::memcpy(whole.raw_data(), input.raw_data(), input.nbytes());
      all_reduce_now(whole, call);
      const size_t bytes = output.nbytes();
      std::memcpy(output.raw_data(), static_cast<char*>(whole.raw_data()) + static_cast<size_t>(rank()) * bytes, bytes);
    });
  }
  WorkPtr do_barrier(const CollectiveOptions& options) override { return enqueue_barrier(options, timeout()); }
  void do_monitored_barrier(const CollectiveOptions& options, Milliseconds timeout) override {
    // The steps are in time; each may take a moment to find out who is missing.
    enqueue_barrier(options, timeout)->wait(timeout + 4 * patience(timeout) + std::chrono::seconds(5));
  }

 private:
  bool leads() const noexcept { return layout_.local == 0; }

  WorkPtr enqueue_barrier(const CollectiveOptions& options, Milliseconds timeout) {
    return enqueue("barrier", Tensor(), options, timeout, [this](const Call& call) { meet(call); });
  }

  void meet(const Call& call) {
    // All of this host are here; all hosts are; everybody knows.
    const auto all_here = [&] { return inside_->all_reduce(token_, call.step(), call.options.where); };
    inside(call, all_here);
    if (leads() && between_)
      between(call, [&] { return between_->all_reduce(token_, call.step(), call.options.where); });
    inside(call, all_here, true);
  }

  void all_reduce_now(const Tensor& tensor, const Call& call) {
    const ReduceOp op = call.options.op == ReduceOp::Avg ? ReduceOp::Sum : call.options.op;
    // Sums of half types stay in float until the end, over all hosts.
    const bool half = is_half(tensor.dtype());
    Tensor sums = view::flat(tensor);
    if (half || !inside_->reaches(tensor)) {
      sums = inside_->allocate(tensor.numel(), half ? kFloat32 : tensor.dtype());
      kernels::copy(sums, view::flat(tensor));
    }
    const bool even = layout_.even();
    const auto [begin, end] = even ? inside_->share(sums.numel(), sums.dtype()) : std::pair(int64_t{0}, sums.numel());
    const Tensor share = view::slice(sums, 0, begin, end);
    const auto peers = std::make_shared<std::vector<void*>>();  // the sums of all ranks of this host
    inside(call, [&] { return inside_->show(sums, call.step(op), peers); });
    if (between_) {
      // May still run when this call has given up.
      const auto add = [this, peers, sums, first = begin, op](size_t hop, const void* partial, void* result,
                                                              int64_t from, int64_t to) {
        add_run(runs_[hop], *peers, first, partial, result, from, to, sums.dtype(), op);
      };
      between(call, [&] { return between_->reduce_along({chain_, add}, share, call.step(op)); });
    } else if (layout_.hosts.size() == 1) {
      add_run(runs_[0], *peers, begin, nullptr, share.raw_data(), 0, share.numel(), sums.dtype(), op);
    }
    if (even || leads()) finish_average(share, call);
    inside(
        call,
        [&] {
          return even ? inside_->gather_shares(sums, call.step(op))
                      : inside_->broadcast(sums, call.step_from(0), call.options.where);
        },
        true);
    if (sums.raw_data() != tensor.raw_data()) kernels::copy(view::flat(tensor), sums);
  }

  // Elements [from, to) of a share that begins at element `first`.
  void add_run(const Run& run, const std::vector<void*>& peers, int64_t first, const void* partial, void* result,
               int64_t from, int64_t to, DType dtype, ReduceOp op) const {
    if (from == to) return;
    std::vector<void*> inputs;
    if (partial) inputs.push_back(const_cast<void*>(partial));
    for (const int local : run.ranks)
      inputs.push_back(static_cast<char*>(peers[static_cast<size_t>(local)]) +
                       static_cast<size_t>(first + from) * itemsize(dtype));
    void* outputs[] = {result};
    reduce_elements(inputs, outputs, dtype, op, 0, to - from);
  }

  void finish_average(const Tensor& sums, const Call& call) const {
    if (call.options.op == ReduceOp::Avg) scale_elements(sums.raw_data(), sums.dtype(), 1.0 / size(), sums.numel());
  }

  void broadcast_now(const Tensor& tensor, const Call& call) {
    int home = 0;  // the root's host
    int place = 0;
    for (size_t host = 0; host < layout_.hosts.size(); ++host) {
      const std::vector<int>& ranks = layout_.hosts[host];
      const auto found = std::find(ranks.begin(), ranks.end(), call.options.root);
      if (found == ranks.end()) continue;
      home = static_cast<int>(host);
      place = static_cast<int>(found - ranks.begin());
    }
    const bool at_home = layout_.host == home;
    // On the root's host first, so that its leader has it; then to the other leaders; then on their
    // hosts.
    const auto spread = [&](int root) {
      inside(
          call, [&] { return inside_->broadcast(tensor, call.step_from(root), call.options.where); }, !at_home);
    };
    if (at_home) spread(place);
    if (leads() && between_)
      between(call, [&] { return between_->broadcast(tensor, call.step_from(home), call.options.where); });
    if (!at_home) spread(0);
  }

  void all_gather_now(const Tensor& output, const Tensor& input, const Call& call) {
    // Every host fills as many places as the largest needs; the leaders exchange these; each rank
    // sorts them out.
    const int64_t n = input.numel();
    const auto places = static_cast<int64_t>(layout_.most_ranks());
    const auto hosts = static_cast<int64_t>(layout_.hosts.size());
    const Tensor all = inside_->allocate(hosts * places * n, input.dtype());
    const Tensor ours = view::slice(all, 0, layout_.host * places * n, (layout_.host + 1) * places * n);
    const Tensor used = view::slice(ours, 0, 0, inside_->size() * n);
    inside(call, [&] { return inside_->all_gather(used, input, call.step(), call.options.where); });
    if (leads() && between_) {
      const Tensor from_all = inside_->allocate(all.numel(), all.dtype());
      between(call, [&] { return between_->all_gather(from_all, ours, call.step(), call.options.where); });
      std::memcpy(all.raw_data(), from_all.raw_data(), all.nbytes());
    }
    inside(
        call, [&] { return inside_->broadcast(all, call.step_from(0), call.options.where); }, true);
    const size_t bytes = input.nbytes();
    const char* from = static_cast<const char*>(all.raw_data());
    char* to = static_cast<char*>(output.raw_data());
    for (size_t host = 0; host < layout_.hosts.size(); ++host) {
      const std::vector<int>& ranks = layout_.hosts[host];
      for (size_t i = 0; i < ranks.size(); ++i)
        std::memcpy(to + static_cast<size_t>(ranks[i]) * bytes, from + (host * static_cast<size_t>(places) + i) * bytes,
                    bytes);
    }
  }

  // --- steps, and what becomes of their failures

  // A step inside the host; `last` when it comes after one between hosts, whose delay it must bear.
  void inside(const Call& call, const std::function<WorkPtr()>& post, bool last = false) {
    try {
      // Between hosts they also need a moment to find out who is missing.
      post()->wait(call.left() + (last ? 2 * patience(call.timeout) + Milliseconds(2500) : Milliseconds(0)));
    } catch (const CollectiveError& error) {
      fail(std::current_exception(), error);
    } catch (const DistError& error) {
      // A companion that gave up because of another host has said so.
      fail_as_told(call, Milliseconds(0));
      if (dynamic_cast<const TimeoutError*>(&error)) fail_late(call, "inside its host", error);
      fail(std::current_exception(), error);
    }
  }

  void between(const Call& call, const std::function<WorkPtr()>& post) {
    try {
      post()->wait(call.left() + patience(call.timeout));
    } catch (const CollectiveError& error) {
      fail(std::current_exception(), error);
    } catch (const DistError& error) {
      // What Gloo can tell is that a connection is gone. Those who share a host with the cause know
      // more, and may need a moment to say so; at a time-out they have had it.
      const bool timed_out = dynamic_cast<const TimeoutError*>(&error) != nullptr;
      fail_as_told(call, Milliseconds(timed_out ? 20 : 500));
      if (timed_out) fail_late(call, "between hosts", error);
      const std::string text =
          fmt::format("{}; that was the step between hosts, with rank {}", error.what(), partners_);
      fail(DiagnosedAs<PeerError>(text, verdicts_of(error)));
    }
  }

  // A step had less time than the collective; this speaks of the collective.
  [[noreturn]] void fail_late(const Call& call, const char* where, const DistError& error) {
    std::vector<Verdict> verdicts = verdicts_of(error);
    std::string text = fmt::format("timed out after {} ms in {} on rank {}, {}: ", call.timeout.count(),
                                   in_words(call.info), rank(), where);
    if (verdicts.empty()) {
      text += error.what();
    } else {
      text += fmt::format("waiting for rank {}; {}", fmt::join(verdicts[0].ranks, ", "), verdicts[0].cause.text);
    }
    fail(DiagnosedAs<TimeoutError>(text, std::move(verdicts)));
  }

  template <class E>
  [[noreturn]] void fail(const E& error) {
    fail(std::make_exception_ptr(error), error);
  }
  // `error` is what `pointer` points to.
  [[noreturn]] void fail(const std::exception_ptr& pointer, const std::exception& error) {
    std::vector<Verdict> verdicts = verdicts_of(error);
    const std::string text = verdicts.empty() ? fmt::format("failed: {}", error.what()) : error.what();
    break_with(pointer, error.what(), {rank(), text, std::move(verdicts)});
    throw_if_broken();
    std::rethrow_exception(pointer);  // not reached
  }

  // The first failure counts; the peers learn of it.
  void break_with(std::exception_ptr error, const std::string& what, const Reason& reason) noexcept {
    {
      std::lock_guard lock(mutex_);
      if (broken_) return;
      broken_ = std::move(error);
    }
    write_record(what);
    try {
      if (!store_->check(cause_key_)) store_->set(cause_key_, to_text(reason));
    } catch (const std::exception&) {
      // The store may be gone before us.
    }
    inside_->abort(what);
    if (between_) between_->abort(what);
  }

  void throw_if_broken() {
    std::lock_guard lock(mutex_);
    if (broken_) std::rethrow_exception(broken_);
  }

  // Why the group broke, if a rank says so in time.
  std::optional<Reason> told_reason(Milliseconds time) noexcept {
    try {
      const auto until = Clock::now() + time;
      while (true) {
        if (store_->check(cause_key_)) return decoded<Reason>(store_->get(cause_key_, Milliseconds(100)));
        if (Clock::now() >= until) break;
        std::this_thread::sleep_for(Milliseconds(10));
      }
    } catch (const std::exception&) {
      // No store, no reason.
    }
    return std::nullopt;
  }

  // Fails with the verdict that another rank has given, if it does so in time.
  void fail_as_told(const Call& call, Milliseconds time) {
    std::optional<Reason> reason = told_reason(time);
    if (!reason || reason->rank == rank()) return;
    if (reason->verdicts.empty()) {
      const std::string how = reason->text;
      Whereabouts place;
      place.rank = reason->rank;
      reason->text = fmt::format("rank {} {}", reason->rank, how);
      reason->verdicts = {rank_lost(call.info, place, how, true)};
    }
    const std::string kind = reason->verdicts[0].kind;
    if (kind == "collective_mismatch") fail(CollectiveError(reason->text, reason->verdicts));
    const std::string text = fmt::format("{}; rank {} was told so in {}", reason->text, rank(), in_words(call.info));
    if (kind == "collective_timeout") fail(DiagnosedAs<TimeoutError>(text, reason->verdicts));
    fail(DiagnosedAs<PeerError>(text, reason->verdicts));
  }

  WorkPtr enqueue(const char* kind, const Tensor& tensor, const CollectiveOptions& options,
                  std::function<void(const Call&)> run) {
    // Ranks must meet also when there is nothing to exchange.
    if (tensor.defined() && tensor.numel() == 0) run = [this](const Call& call) { meet(call); };
    return enqueue(kind, tensor, options, timeout(), std::move(run));
  }
  WorkPtr enqueue(const char* kind, const Tensor& tensor, const CollectiveOptions& options, Milliseconds timeout,
                  std::function<void(const Call&)> run) {
    throw_if_broken();
    auto call = std::make_shared<Call>();
    call->info = record(kind, tensor, options);
    call->options = options;
    call->options.description = call->info.description;
    call->timeout = timeout;
    return queue_.post(in_words(call->info), [this, call, run = std::move(run)](WorkTimes&) {
      throw_if_broken();
      call->deadline = Clock::now() + call->timeout;
      try {
        run(*call);
      } catch (const std::exception& error) {
        // Also what is no failure of a step: memory that cannot be had. The peers must not wait for
        // us.
        break_with(std::current_exception(), error.what(), {rank(), fmt::format("failed: {}", error.what()), {}});
        throw_if_broken();
      }
      recorder().finish(call->info.sequence);
    });
  }

  std::shared_ptr<Store> store_;
  std::string cause_key_;
  HostLayout layout_;
  std::vector<Run> runs_;
  std::vector<int> chain_;                    // the host of each run: a hop
  std::string partners_;                      // the ranks of other hosts that this one talks to
  std::shared_ptr<shm::SharedGroup> inside_;  // the ranks of this host
  std::shared_ptr<ChainGroup>
      between_;   // the ranks with this place on all hosts, or the leaders; null for those who talk to nobody
  Tensor token_;  // what a barrier exchanges
  std::mutex mutex_;
  std::exception_ptr broken_;
  std::string failure_;  // see note_failure
  WorkQueue queue_;      // last: its thread uses the others
};

}  // namespace

ProcessGroupPtr make_hosts_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                 const std::string& prefix) {
  HostLayout layout = exchange_hosts(*store, rank, size, timeout, prefix);
  if (layout.most_ranks() > static_cast<size_t>(shm::kMaxRanks))
    throw DistError("hosts: expected at most {} ranks on a host, got {}; use the gloo backend", shm::kMaxRanks,
                    layout.most_ranks());
  return std::make_shared<HostsGroup>(std::move(store), rank, size, timeout, prefix, std::move(layout));
}

}  // namespace brigade::dist
