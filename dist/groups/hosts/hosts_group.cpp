// The hosts backend: ranks on several hosts. Memory is faster than the network, so each byte crosses the network as
// rarely as possible:
//
//   all_reduce on hosts of k ranks each: rank i of every host has a share of the elements, which it adds over the ranks
//   of its host in shared memory. It starts from the partial sums of rank i of the previous host, and sends its own to
//   rank i of the next host over Gloo (k such chains run at the same time, each with 1/k of the bytes). The sums of the
//   last host are the result, which travels back along the chain; then the ranks of a host copy each other's shares.
//
// So the sums are bitwise equal to those of one host: in rank order, in float for half types. A host whose ranks are
// not consecutive adds several times, once for each run of consecutive ranks. When hosts have different numbers of
// ranks, there are no matching shares: the first rank of each host, its leader, takes all elements as its share. The
// other collectives are rare in training and also go through the leaders.
//
// The steps block, so one thread runs the collectives in posting order. See steps.h for failures.
#include <brigade/core/view.h>
#include <brigade/dist/errors/collective.h>
#include <brigade/dist/groups/arithmetic.h>
#include <brigade/dist/groups/chain.h>
#include <brigade/dist/groups/hosts/steps.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/shm/shared_group.h>
#include <brigade/dist/groups/subgroup.h>
#include <brigade/dist/groups/work_queue.h>
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/dist/rendezvous/store.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cstring>
#include <exception>

namespace brigade::dist {
namespace {

using Milliseconds = std::chrono::milliseconds;

// A run of consecutive ranks on one host.
struct Run {
  int host = 0;
  std::vector<int> ranks;  // as local indices on the host
};

// Splits the ranks, in order, into runs.
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
             HostLayout layout, const RankNames& names)
      : ProcessGroup(rank, size, timeout, names),
        store_(store),
        prefix_(prefix),
        layout_(std::move(layout)),
        runs_(runs_of(layout_, size)),
        steps_(std::move(store), rank, timeout, prefix, layout_, names,
               [this](const std::string& what) { write_record(what); }),
        inside_(steps_.inside_group()),
        between_(steps_.between_group()),
        token_(inside_->allocate(1, kInt32)),
        queue_(timeout) {
    for (const Run& run : runs_)
      chain_.push_back(run.host);
    *token_.data_ptr<int32_t>() = 0;
  }

  ~HostsGroup() override {
    end_channels();
    forget_staged();
    // Pending works of a destroyed group must not keep the peers waiting.
    if (queue_.idle()) return;
    if (!failure_.empty()) {
      abort(failure_);
    } else if (std::uncaught_exceptions() > 0) {
      abort("left while an exception was in flight");
    }
  }

  const char* backend() const noexcept override { return "hosts"; }
  ProcessGroupPtr make_subgroup(const Subgroup& members) override {
    if (!members.is_member()) return nullptr;
    return make_hosts_group(store_, members.rank, members.size(), members.timeout, prefix_of(prefix_, members),
                            members.names);
  }
  ProcessGroupPtr make_channel(const Subgroup& members) override { return make_subgroup(members); }
  using ProcessGroup::allocate;
  Tensor allocate(int64_t numel, DType dtype) override { return inside_->allocate(numel, dtype); }

  void do_note_activity(const RankActivity& activity) override {
    inside_->note_activity(activity);
    if (between_) between_->note_activity(activity);
  }
  void note_exception(bool has_ended) override {
    inside_->note_exception(has_ended);
    if (between_) between_->note_exception(has_ended);
  }
  void note_failure(std::string_view reason) override {
    failure_ = reason;
    inside_->note_failure(reason);
    if (between_) between_->note_failure(reason);
  }
  void abort(std::string_view reason) override {
    steps_.break_with(
        std::make_exception_ptr(DistError("the hosts group was aborted on rank {}: {}", named(rank()), reason)),
        std::string(reason), {rank(), std::string(reason), {}});
  }

 protected:
  WorkPtr do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) override {
    return enqueue(CollectiveKind::AllReduce, tensor, options,
                   [this, tensor](const HostsCall& call) { all_reduce_now(tensor, call); });
  }
  WorkPtr do_broadcast(const Tensor& tensor, const CollectiveOptions& options) override {
    return enqueue(CollectiveKind::Broadcast, tensor, options,
                   [this, tensor](const HostsCall& call) { broadcast_now(tensor, call); });
  }
  WorkPtr do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return enqueue(CollectiveKind::AllGather, input, options,
                   [this, output, input](const HostsCall& call) { all_gather_now(output, input, call); });
  }
  WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return enqueue(CollectiveKind::ReduceScatter, input, options, [this, output, input](const HostsCall& call) {
      // Implemented with an all-reduce: twice the traffic of the best algorithm, but the same bits.
      const Tensor whole = inside_->allocate(input.numel(), input.dtype());
      std::memcpy(whole.raw_data(), input.raw_data(), input.nbytes());
      all_reduce_now(whole, call);
      const size_t bytes = output.nbytes();
      std::memcpy(output.raw_data(), static_cast<char*>(whole.raw_data()) + static_cast<size_t>(rank()) * bytes, bytes);
    });
  }
  WorkPtr do_barrier(const CollectiveOptions& options) override { return enqueue_barrier(options, timeout()); }
  void do_monitored_barrier(const CollectiveOptions& options, Milliseconds timeout) override {
    // The steps respect `timeout`; each may need extra time to find the missing ranks.
    enqueue_barrier(options, timeout)->wait(timeout + 4 * patience_of_steps(timeout) + std::chrono::seconds(5));
  }

 private:
  bool leads() const noexcept { return layout_.local == 0; }

  WorkPtr enqueue_barrier(const CollectiveOptions& options, Milliseconds timeout) {
    return enqueue(CollectiveKind::Barrier, Tensor(), options, timeout, [this](const HostsCall& call) { meet(call); });
  }

  void meet(const HostsCall& call) {
    // Gather the ranks of this host, then all hosts, then release the ranks of this host.
    const auto all_here = [&] { return inside_->all_reduce(token_, call.step(), call.options.where); };
    steps_.inside(call, all_here);
    if (leads() && between_)
      steps_.between(call, [&] { return between_->all_reduce(token_, call.step(), call.options.where); });
    steps_.inside(call, all_here, true);
  }

  void all_reduce_now(const Tensor& tensor, const HostsCall& call) {
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
    steps_.inside(call, [&] { return inside_->show(sums, call.step(op), peers); });
    if (between_) {
      // May still run after this call has given up.
      const auto add = [this, peers, sums, first = begin, op](size_t hop, const void* partial, void* result,
                                                              int64_t from, int64_t to) {
        add_run(runs_[hop], *peers, first, partial, result, from, to, sums.dtype(), op);
      };
      steps_.between(call, [&] { return between_->reduce_along({chain_, add}, share, call.step(op)); });
    } else if (layout_.hosts.size() == 1) {
      add_run(runs_[0], *peers, begin, nullptr, share.raw_data(), 0, share.numel(), sums.dtype(), op);
    }
    if (even || leads()) finish_average(share, call);
    steps_.inside(
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

  void finish_average(const Tensor& sums, const HostsCall& call) const {
    if (call.options.op == ReduceOp::Avg) scale_elements(sums.raw_data(), sums.dtype(), 1.0 / size(), sums.numel());
  }

  void broadcast_now(const Tensor& tensor, const HostsCall& call) {
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
    // First inside the root's host, so that its leader has the values; then to the other leaders; then inside their
    // hosts.
    const auto spread = [&](int root) {
      steps_.inside(
          call, [&] { return inside_->broadcast(tensor, call.step_from(root), call.options.where); }, !at_home);
    };
    if (at_home) spread(place);
    if (leads() && between_)
      steps_.between(call, [&] { return between_->broadcast(tensor, call.step_from(home), call.options.where); });
    if (!at_home) spread(0);
  }

  void all_gather_now(const Tensor& output, const Tensor& input, const HostsCall& call) {
    // Every host pads to the number of ranks of the largest host; the leaders exchange the padded blocks; each rank
    // reorders them.
    const int64_t n = input.numel();
    const auto places = static_cast<int64_t>(layout_.most_ranks());
    const auto hosts = static_cast<int64_t>(layout_.hosts.size());
    const Tensor all = inside_->allocate(hosts * places * n, input.dtype());
    const Tensor ours = view::slice(all, 0, layout_.host * places * n, (layout_.host + 1) * places * n);
    const Tensor used = view::slice(ours, 0, 0, inside_->size() * n);
    steps_.inside(call, [&] { return inside_->all_gather(used, input, call.step(), call.options.where); });
    if (leads() && between_) {
      const Tensor from_all = inside_->allocate(all.numel(), all.dtype());
      steps_.between(call, [&] { return between_->all_gather(from_all, ours, call.step(), call.options.where); });
      std::memcpy(all.raw_data(), from_all.raw_data(), all.nbytes());
    }
    steps_.inside(
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

  WorkPtr enqueue(CollectiveKind kind, const Tensor& tensor, const CollectiveOptions& options,
                  std::function<void(const HostsCall&)> run) {
    // Ranks must synchronize even when there is nothing to exchange.
    if (tensor.defined() && tensor.numel() == 0) run = [this](const HostsCall& call) { meet(call); };
    return enqueue(kind, tensor, options, timeout(), std::move(run));
  }
  WorkPtr enqueue(CollectiveKind kind, const Tensor& tensor, const CollectiveOptions& options, Milliseconds timeout,
                  std::function<void(const HostsCall&)> run) {
    steps_.throw_if_broken();
    auto call = std::make_shared<HostsCall>();
    call->info = record(kind, tensor, options);
    const uint64_t recorded = call->info.sequence;
    if (options.step_of) call->info = *options.step_of;
    call->options = options;
    call->options.description = call->info.text;
    call->options.topic = call->info.topic;
    call->timeout = timeout;
    const auto perform = [this, call, recorded, run = std::move(run)](WorkTimes&) {
      steps_.throw_if_broken();
      call->deadline = HostsCall::Clock::now() + call->timeout;
      try {
        run(*call);
      } catch (const std::exception& error) {
        // Also failures outside the steps, such as an allocation: the peers must not wait for this rank.
        steps_.break_with(std::current_exception(), error.what(), {rank(), error.what(), {}});
        steps_.throw_if_broken();
      }
      recorder().finish(recorded);
    };
    return queue_.post(in_words(call->info), perform, [this](Milliseconds waited) { steps_.end_early(waited); });
  }

  const std::shared_ptr<Store> store_;
  const std::string prefix_;
  const HostLayout layout_;
  const std::vector<Run> runs_;
  std::vector<int> chain_;  // the host of each run, which is a hop
  HostSteps steps_;
  shm::SharedGroup* const inside_;
  ChainGroup* const between_;  // may be null
  Tensor token_;               // what a barrier exchanges
  std::string failure_;        // see note_failure
  WorkQueue queue_;            // last: its thread uses the other members
};

}  // namespace

ProcessGroupPtr make_hosts_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                 const std::string& prefix, const RankNames& names) {
  HostLayout layout = exchange_hosts(*store, rank, size, timeout, prefix, names);
  if (layout.most_ranks() > static_cast<size_t>(shm::kMaxRanks))
    throw DistError("hosts: expected at most {} ranks on a host, got {}; use the gloo backend", shm::kMaxRanks,
                    layout.most_ranks());
  return std::make_shared<HostsGroup>(std::move(store), rank, size, timeout, prefix, std::move(layout), names);
}

}  // namespace brigade::dist
