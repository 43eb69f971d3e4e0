// Ranks on any hosts, over TCP, by Gloo. Gloo's calls block, so one thread per group runs them in
// order; a Work waits for its turn.
//
// Gloo sums whatever bytes it is given, and ends the process when sizes differ. So before each
// collective a rank exchanges a digest of what it is about with its neighbours in a ring
// (BRIGADE_COLLECTIVE_CHECK=0 leaves that out). When anything goes wrong each rank leaves its place
// in the store and reads the others': all name the same ranks. Every rank also leaves its place
// there a few times a second, so that one that can speak no more has said where it was.
#include <brigade/core/factory.h>
#include <brigade/dist/diagnosis/collective.h>
#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/groups/arithmetic.h>
#include <brigade/dist/groups/fnv.h>
#include <brigade/dist/groups/gloo/break_connections.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/work_queue.h>
#include <brigade/dist/meeting/store.h>
#include <brigade/dist/timeline/timeline.h>
#include <brigade/kernels/elementwise.h>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace brigade::dist {

namespace {

// Where a rank is, as it tells the others: its last collective, and what it does since.
struct PlaceInStore {
  std::string state;  // "well", "timed out", ...
  CollectiveInfo collective;
  bool finished = false;
  std::string activity = {};
  Place activity_at = {};
  double activity_seconds = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlaceInStore, state, collective, finished, activity, activity_at, activity_seconds)

// Gloo meets through our store.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(std::shared_ptr<dist::Store> store, std::string prefix, std::chrono::milliseconds timeout)
      : store_(std::move(store)), prefix_(std::move(prefix)), timeout_(timeout) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(prefix_ + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_->get(prefix_ + key, timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    for (const std::string& key : keys)
      store_->get(prefix_ + key, timeout);
  }

 private:
  std::shared_ptr<dist::Store> store_;
  std::string prefix_;
  std::chrono::milliseconds timeout_;
};

// Gloo's reduce functions get no context, so there is one function for each dtype and operation.
template <class T, ReduceOp kOp>
void combine(void* result, const void* a, const void* b, size_t n) {
  combine_elements(result, a, b, dtype_of<T>, kOp, static_cast<int64_t>(n));
}

using Combine = void (*)(void*, const void*, const void*, size_t);

Combine combine_for(DType dtype, ReduceOp op) {
  return visit_dtype(dtype, [&]<class T>() -> Combine {
    switch (op) {
      case ReduceOp::Max: return &combine<T, ReduceOp::Max>;
      case ReduceOp::Min: return &combine<T, ReduceOp::Min>;
      default: return &combine<T, ReduceOp::Sum>;
    }
  });
}

// A peer that goes away must be an error of the call (Gloo writes without MSG_NOSIGNAL), unless the
// program has a handler of its own.
void ignore_broken_pipes() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction current {};
    if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
  });
}

class GlooGroup final : public ProcessGroup {
 public:
  GlooGroup(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
            const std::string& prefix, RankNames names)
      : ProcessGroup(rank, size, timeout, std::move(names)), store_(std::move(store)), prefix_(prefix) {
    ignore_broken_pipes();
    gloo::transport::tcp::attr attributes;
    const char* interface = std::getenv("BRIGADE_SOCKET_IFNAME");
    if (!interface) interface = std::getenv("GLOO_SOCKET_IFNAME");
    if (interface) {
      attributes.iface = interface;
    } else {
      // The way to the store is a way to the other ranks. A host's own name often resolves to an
      // address that only the host itself can reach.
      const std::string address = store_->local_address();
      attributes.hostname = address.empty() ? "127.0.0.1" : address;
    }
    try {
      auto device = gloo::transport::tcp::CreateDevice(attributes);
      auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
      // For a connection Gloo waits five times as long as it is told.
      context->setTimeout(std::max(timeout / 5, std::chrono::milliseconds(1)));
      GlooStore meeting(store_, prefix + "/gloo/", timeout);
      context->connectFullMesh(meeting, device);
      context->setTimeout(timeout);
      context_ = context;
    } catch (const TimeoutError& error) {
      throw TimeoutError("rendezvous: rank {} waited {} ms for its peers: {}", named(rank), timeout.count(),
                         error.what());
    } catch (const DistError&) {
      throw;
    } catch (const std::exception& error) {  // Gloo has several kinds
      throw DistError(
          "gloo: rank {} cannot connect to its peers from {}: {}; BRIGADE_SOCKET_IFNAME names the interface on which "
          "the other hosts can reach this one",
          named(rank), interface ? fmt::format("interface {}", interface) : attributes.hostname, error.what());
    }
    const char* check = std::getenv("BRIGADE_COLLECTIVE_CHECK");
    check_ = size > 1 && !(check && std::strcmp(check, "0") == 0);
    if (check_) {
      sent_ = context_->createUnboundBuffer(&own_digest_, sizeof own_digest_);
      received_ = context_->createUnboundBuffer(&other_digest_, sizeof other_digest_);
    }
    queue_.emplace(timeout);
    if (size > 1) heart_ = std::thread([this] { beat(); });
  }

  ~GlooGroup() override {
    forget_staged();
    if (!failed_) {
      note_gone(!failure_.empty()                ? "failed: " + failure_
                : std::uncaught_exceptions() > 0 ? std::string("left while an exception was in flight")
                                                 : std::string("left the group"));
    }
    queue_.reset();
    {
      std::lock_guard lock(place_mutex_);
      stop_heart_ = true;
    }
    place_changed_.notify_all();
    if (heart_.joinable()) heart_.join();
  }

  const char* backend() const noexcept override { return "gloo"; }
  using ProcessGroup::allocate;
  Tensor allocate(int64_t numel, DType dtype) override {
    if (numel < 0) throw ShapeError("allocate: the number of elements must not be negative, got {}", numel);
    const size_t bytes = checked_bytes(numel, itemsize(dtype));
    auto storage = make_intrusive<Storage>(cpu_allocate(bytes), bytes, Device(), context_.get());
    return Tensor(make_intrusive<TensorImpl>(std::move(storage), Shape{numel}, Shape{1}, 0, dtype));
  }
  void note_activity(std::string_view what, SourceLocation where) override {
    std::lock_guard lock(place_mutex_);
    activity_ = what;
    activity_where_ = where;
    activity_since_ = now_ns();
  }
  void note_failure(std::string_view reason) override { failure_ = reason; }

  void abort(std::string_view reason) override {
    {
      const std::lock_guard lock(abort_mutex_);
      if (failed_.exchange(true)) return;
      aborted_ = true;
      abort_reason_ = reason;
    }
    note_gone(fmt::format("failed: {}", reason));
    close_connections();
  }

 protected:
  WorkPtr do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) override {
    return enqueue("all_reduce", tensor, options, [this, tensor, op = options.op] { all_reduce_now(tensor, op); });
  }
  WorkPtr do_broadcast(const Tensor& tensor, const CollectiveOptions& options) override {
    return enqueue("broadcast", tensor, options, [this, tensor, root = options.root] {
      gloo::BroadcastOptions o(context_);
      o.setOutput(static_cast<uint8_t*>(tensor.raw_data()), tensor.nbytes());
      o.setRoot(root);
      gloo::broadcast(o);
    });
  }
  WorkPtr do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return enqueue("all_gather", input, options, [this, output, input] {
      gloo::AllgatherOptions o(context_);
      o.setInput(static_cast<uint8_t*>(input.raw_data()), input.nbytes());
      o.setOutput(static_cast<uint8_t*>(output.raw_data()), output.nbytes());
      gloo::allgather(o);
    });
  }
  WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return enqueue("reduce_scatter", input, options, [this, output, input, op = options.op] {
      // By way of an all-reduce: twice the traffic of the best algorithm, and the same bits as
      // all_reduce gives.
      const Tensor whole = kernels::clone(input);
      all_reduce_now(whole, op);
      const size_t bytes = output.nbytes();
      if (bytes > 0)
        std::memcpy(output.raw_data(), static_cast<char*>(whole.raw_data()) + static_cast<size_t>(rank()) * bytes,
                    bytes);
    });
  }
  WorkPtr do_barrier(const CollectiveOptions& options) override {
    return enqueue("barrier", Tensor(), options, [this] {
      gloo::BarrierOptions o(context_);
      gloo::barrier(o);
    });
  }

 private:
  void all_reduce_now(const Tensor& tensor, ReduceOp op) {
    visit_dtype(tensor.dtype(), [&]<class T>() {
      // Gloo knows elements only by their size here: the arithmetic is ours.
      using Raw = std::conditional_t<
          sizeof(T) == 8, uint64_t,
          std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
      gloo::AllreduceOptions o(context_);
      o.setOutput(static_cast<Raw*>(tensor.raw_data()), static_cast<size_t>(tensor.numel()));
      o.setReduceFunction(combine_for(tensor.dtype(), op));
      gloo::allreduce(o);
    });
    if (op == ReduceOp::Avg) scale_elements(tensor.raw_data(), tensor.dtype(), 1.0 / size(), tensor.numel());
  }

  WorkPtr enqueue(const char* kind, const Tensor& tensor, const CollectiveOptions& options, std::function<void()> run) {
    const CollectiveInfo recorded = record(kind, tensor, options);
    const CollectiveInfo info = options.step_of ? *options.step_of : recorded;
    if (failed_) give_up(info, "the group failed before");
    {
      std::lock_guard lock(place_mutex_);
      last_ = info;
      last_finished_ = false;
    }
    const bool empty = tensor.defined() && tensor.numel() == 0;
    std::function<void(WorkTimes&)> job;
    if (size() > 1) {
      job = [this, run = empty ? std::function<void()>() : std::move(run), info,
             number = recorded.sequence](WorkTimes& times) { run_checked(run, info, number, times); };
    } else {
      job = [run = std::move(run)](WorkTimes& times) {
        times.arrived = now_ns();
        if (run) run();
      };
    }
    return queue_->post(in_words(info), std::move(job),
                        [this, info](std::chrono::milliseconds waited) { give_up(info, "timed out", waited); });
  }

  // On the worker thread.
  void run_checked(const std::function<void()>& run, const CollectiveInfo& info, uint64_t number, WorkTimes& times) {
    try {
      if (failed_) throw std::runtime_error("the group failed before");
      if (check_) {
        check_neighbour(info, number);
        // Of two ranks the neighbour is the only peer; of more, nobody can tell when the last one
        // came.
        if (size() == 2) times.arrived = now_ns();
      }
      if (run) run();
      recorder().finish(number);
      std::lock_guard lock(place_mutex_);
      if (last_.sequence == info.sequence) last_finished_ = true;
    } catch (const Mismatch&) {
      give_up(info, "ranks met in different collectives");
    } catch (const std::exception& error) {
      give_up(info, error.what());  // Gloo has several kinds
    }
  }

  struct Mismatch {};

  // Digests go round a ring of ranks: equal to the left neighbour's everywhere means equal
  // everywhere.
  void check_neighbour(const CollectiveInfo& info, uint64_t number) {
    own_digest_ = fnv(fmt::format("{} {} {} {} {} {} {}", number, info.kind, info.op, info.dtype, info.count, info.root,
                                  info.description));
    const uint64_t slot = (uint64_t{0xB1} << 56) | number;
    received_->recv((rank() + size() - 1) % size(), slot);
    sent_->send((rank() + 1) % size(), slot);
    sent_->waitSend(timeout());
    received_->waitRecv(timeout());
    if (other_digest_ != own_digest_) throw Mismatch();
  }

  // Gloo cannot end a call from outside; breaking the connections ends those of this rank and of
  // its peers.
  void close_connections() noexcept {
    try {
      break_connections(*context_);
    } catch (const std::exception&) {
      // They are broken already.
    }
  }

  // Leaves this rank's place, reads the others', and throws what all of them say together.
  [[noreturn]] void give_up(const CollectiveInfo& info, const std::string& what) { give_up(info, what, timeout()); }
  [[noreturn]] void give_up(const CollectiveInfo& info, const std::string& what, std::chrono::milliseconds waited) {
    // Whatever fails after the first failure fails because of it.
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
  [[noreturn]] void find_out(const CollectiveInfo& info, const std::string& what, std::chrono::milliseconds waited) {
    {
      const std::lock_guard lock(abort_mutex_);
      failed_ = true;
      if (aborted_)
        throw DistError("the gloo group was aborted on rank {}: {}; it was in {}", named(rank()), abort_reason_,
                        in_words(info));
    }
    bool timed_out = what.find("imed out") != std::string::npos;
    const bool own_time_out = timed_out;
    post_place(timed_out ? "timed out" : "stuck", info, false);
    close_connections();
    // Peers that fail because of the same thing come within moments; one that is dead or elsewhere
    // does not.
    std::vector<RankState> places(static_cast<size_t>(size()));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timed_out ? 1500 : 700);
    bool all = false;
    bool first_look = true;
    while (!all && std::chrono::steady_clock::now() < deadline) {
      all = true;
      for (int r = 0; r < size(); ++r) {
        RankState& place = places[static_cast<size_t>(r)];
        if (!place.stuck && place.gone.empty()) place = place_of(r);
        // A peer that gave up waiting has broken our connection: who was missed there has not died
        // because of that.
        timed_out = timed_out || place.timed_out;
        // It was only late, and left when it found us gone.
        if (timed_out && !first_look && place.gone.starts_with("left")) place.gone.clear();
        all = all && (place.stuck || !place.gone.empty());
      }
      first_look = false;
      if (!all) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    places[static_cast<size_t>(rank())].stuck = true;
    places[static_cast<size_t>(rank())].whereabouts.last = info;
    const std::string time_out = !timed_out     ? ""
                                 : own_time_out ? fmt::format("timed out after {} ms", waited.count())
                                                : std::string("a peer timed out");
    throw_common(info, what, time_out, places);
  }

  struct RankState {
    bool stuck = false;      // its collective failed
    bool timed_out = false;  // because somebody did not come
    std::string gone;        // "left the group", "failed: ...": it is not coming
    Whereabouts whereabouts;
  };

  template <class E>
  [[noreturn]] void fail(const E& error) {
    write_record(error.what());
    throw error;
  }

  // `time_out`: in words, when this rank or a peer of it gave up waiting.
  [[noreturn]] void throw_common(const CollectiveInfo& info, const std::string& what, const std::string& time_out,
                                 const std::vector<RankState>& places) {
    // A rank that left or threw is the cause of everything else.
    for (int r = 0; r < size(); ++r) {
      const RankState& place = places[static_cast<size_t>(r)];
      if (place.gone.empty()) continue;
      const bool exception = place.gone.starts_with("failed: ");
      const std::string message = fmt::format("rank {} {}; rank {} was waiting for it in {}; {}", named(r), place.gone,
                                              named(rank()), in_words(info), in_words(place.whereabouts));
      fail(DiagnosedAs<PeerError>(message, {rank_lost(info, place.whereabouts, place.gone, exception)}));
    }
    std::vector<Whereabouts> missing;
    std::vector<CollectiveInfo> by_rank;
    for (const RankState& place : places) {
      if (!place.stuck) missing.push_back(place.whereabouts);
      by_rank.push_back(place.whereabouts.last);
    }
    if (missing.empty()) {
      const bool differ = std::any_of(by_rank.begin(), by_rank.end(), [&](const CollectiveInfo& each) {
        return each.sequence == by_rank[0].sequence && !each.matches(by_rank[0]);
      });
      if (differ) {
        Verdict verdict = collective_mismatch(by_rank, names());
        const std::string message = verdict.message;
        fail(CollectiveError(message, {std::move(verdict)}));
      }
      fail(PeerError("connections were lost in {} on rank {}: {}", in_words(info), named(rank()), what));
    }
    if (!time_out.empty()) {
      std::string words;
      std::string ranks;
      for (const Whereabouts& place : missing) {
        ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", place.rank);
        words += "; " + in_words(place);
      }
      const std::string message = fmt::format("{} in {} on rank {}: waiting for rank {}{}", time_out, in_words(info),
                                              named(rank()), ranks, words);
      fail(DiagnosedAs<TimeoutError>(message, {collective_timeout(info, missing)}));
    }
    const Whereabouts& lost = missing.front();
    const std::string message =
        fmt::format("rank {} died or lost its connection; rank {} was waiting for it in {}; {} ({})", lost.rank,
                    named(rank()), in_words(info), in_words(lost), what);
    fail(DiagnosedAs<PeerError>(message, {rank_lost(info, lost, "died or lost its connection", false)}));
  }

  // --- places in the store

  void post_place(const char* state, const CollectiveInfo& info, bool finished) noexcept {
    try {
      PlaceInStore place{.state = state, .collective = info, .finished = finished};
      {
        std::lock_guard lock(place_mutex_);
        place.activity = activity_;
        place.activity_at = activity_where_;
        if (activity_since_ > 0) place.activity_seconds = static_cast<double>(now_ns() - activity_since_) * 1e-9;
      }
      // Once it has failed a rank says nothing else.
      std::lock_guard lock(post_mutex_);
      if (failed_ && std::string_view(state) == "well") return;
      store_->set(fmt::format("{}/place/{}", prefix_, rank()), to_text(place));
    } catch (const std::exception&) {
      // The store may be gone before us.
    }
  }

  RankState place_of(int r) noexcept {
    RankState place;
    place.whereabouts.rank = named(r);
    try {
      const std::string gone = fmt::format("{}/gone/{}", prefix_, r);
      if (r != rank() && store_->check(gone)) place.gone = store_->get(gone, std::chrono::seconds(1));
      const std::string key = fmt::format("{}/place/{}", prefix_, r);
      if (!store_->check(key)) return place;
      const auto told = decoded<PlaceInStore>(store_->get(key, std::chrono::seconds(1)));
      place.timed_out = told.state == "timed out";
      place.stuck = told.state != "well";
      place.whereabouts.last = told.collective;
      place.whereabouts.finished = told.finished;
      place.whereabouts.activity = told.activity;
      place.whereabouts.activity_at = told.activity_at;
      place.whereabouts.activity_seconds = told.activity_seconds;
    } catch (const std::exception&) {
      // Then we do not know.
    }
    return place;
  }

  // Posts the place whenever it has changed, a few times a second at most.
  void beat() {
    uint64_t posted = 0;
    bool posted_finished = false;
    int64_t posted_activity = 0;
    std::unique_lock lock(place_mutex_);
    while (!place_changed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return stop_heart_; })) {
      if (failed_ ||
          (posted == last_.sequence && posted_finished == last_finished_ && posted_activity == activity_since_))
        continue;
      posted = last_.sequence;
      posted_finished = last_finished_;
      posted_activity = activity_since_;
      const CollectiveInfo info = last_;
      lock.unlock();
      post_place("well", info, posted_finished);
      lock.lock();
    }
  }

  // A rank that goes away leaves a word in the store, if it can.
  void note_gone(const std::string& how) noexcept {
    {
      std::unique_lock lock(place_mutex_);
      const CollectiveInfo info = last_;
      const bool finished = last_finished_;
      lock.unlock();
      post_place("well", info, finished);
    }
    try {
      store_->set(fmt::format("{}/gone/{}", prefix_, rank()), how);
    } catch (const std::exception&) {
      // The store may be gone before us.
    }
  }

  std::shared_ptr<Store> store_;
  std::string prefix_;
  std::shared_ptr<gloo::Context> context_;
  std::optional<WorkQueue> queue_;
  std::atomic<bool> failed_{false};
  std::mutex abort_mutex_;
  bool aborted_ = false;
  std::string abort_reason_;
  std::string failure_;

  bool check_ = false;
  uint64_t own_digest_ = 0;
  uint64_t other_digest_ = 0;
  std::unique_ptr<gloo::transport::UnboundBuffer> sent_;
  std::unique_ptr<gloo::transport::UnboundBuffer> received_;

  std::mutex give_up_mutex_;
  std::exception_ptr first_error_;
  std::mutex post_mutex_;
  std::mutex place_mutex_;
  std::condition_variable place_changed_;
  std::thread heart_;
  bool stop_heart_ = false;
  CollectiveInfo last_;  // posted by this rank
  bool last_finished_ = true;
  std::string activity_;
  SourceLocation activity_where_;
  int64_t activity_since_ = 0;
};

}  // namespace

ProcessGroupPtr make_gloo_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                const std::string& prefix, const RankNames& names) {
  return std::make_shared<GlooGroup>(std::move(store), rank, size, timeout, prefix, names);
}

}  // namespace brigade::dist
