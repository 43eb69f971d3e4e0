// Ranks on any hosts, over TCP, by Gloo. Gloo's calls block, so one thread per group runs them in order; a Work waits
// for its turn.
#include <brigade/core/factory.h>
#include <brigade/dist/gloo/break_connections.h>
#include <brigade/dist/process_group.h>
#include <brigade/dist/shm/reduce.h>
#include <brigade/dist/store.h>
#include <brigade/dist/work_queue.h>
#include <brigade/kernels/elementwise.h>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>

namespace brigade::dist {

namespace {

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

// A peer that goes away must be an error of the call (Gloo writes without MSG_NOSIGNAL), unless the program has a
// handler of its own.
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
      : ProcessGroup(rank, size, timeout),
        store_(std::move(store)),
        prefix_(prefix),
        name_(std::move(names)),
        queue_(timeout) {
    ignore_broken_pipes();
    gloo::transport::tcp::attr attributes;
    const char* interface = std::getenv("BRIGADE_SOCKET_IFNAME");
    if (!interface) interface = std::getenv("GLOO_SOCKET_IFNAME");
    if (interface) {
      attributes.iface = interface;
    } else {
      // The way to the store is a way to the other ranks. A host's own name often resolves to an address that only the
      // host itself can reach.
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
      throw TimeoutError(fmt::format("rendezvous: rank {} waited {} ms for its peers: {}", name_(rank), timeout.count(),
                                     error.what()));
    } catch (const DistError&) {
      throw;
    } catch (const std::exception& error) {  // Gloo has several kinds
      throw DistError(fmt::format(
          "gloo: rank {} cannot connect to its peers from {}: {}; BRIGADE_SOCKET_IFNAME names the interface on which "
          "the "
          "other hosts can reach this one",
          name_(rank), interface ? fmt::format("interface {}", interface) : attributes.hostname, error.what()));
    }
  }

  ~GlooGroup() override {
    if (!failed_)
      note_gone(std::uncaught_exceptions() > 0 ? "left while an exception was in flight" : "left the group");
  }

  const char* backend() const noexcept override { return "gloo"; }
  Tensor allocate(int64_t numel, DType dtype) override { return empty({numel}, dtype); }

  void abort(std::string_view reason) override {
    if (failed_.exchange(true)) return;
    {
      std::lock_guard lock(abort_mutex_);
      abort_reason_ = reason;
    }
    note_gone(fmt::format("failed: {}", reason));
    break_connections(*context_);
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
      // By way of an all-reduce: twice the traffic of the best algorithm, and the same bits as all_reduce gives.
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
    std::string text = kind;
    if (tensor.defined()) text += fmt::format(" of {}", describe(tensor));
    if (!options.description.empty()) text += fmt::format(" \"{}\"", options.description);
    text += fmt::format(" at {} (collective {})", to_string(options.where), ++posted_);
    if (failed_)
      throw DistError(fmt::format("the gloo group failed before and cannot be used for {}; make a new group", text));
    if (size() > 1 && tensor.defined() && tensor.numel() == 0) run = nullptr;
    if (size() > 1 && run) run = [this, run = std::move(run), text] { translate_errors(run, text); };
    return queue_.post(text, std::move(run));
  }

  // Gloo speaks of sockets; users want to know which rank it was.
  void translate_errors(const std::function<void()>& run, const std::string& text) {
    try {
      run();
    } catch (const gloo::Exception& error) {
      const std::string what = error.what();
      if (failed_.exchange(true)) {
        std::lock_guard lock(abort_mutex_);
        throw DistError(fmt::format("the gloo group was aborted on rank {}: {}; it was in {}", name_(rank()),
                                    abort_reason_.empty() ? "a collective before failed" : abort_reason_, text));
      }
      std::string gone;
      for (int r = 0; r < size() && gone.empty(); ++r) {
        if (r != rank()) gone = reason_of(r);
      }
      note_gone(fmt::format("failed: {}", what));
      if (!gone.empty())
        throw PeerError(fmt::format("{}; rank {} was waiting for it in {}", gone, name_(rank()), text));
      if (what.find("imed out") != std::string::npos) {
        throw TimeoutError(
            fmt::format("timed out after {} ms in {} on rank {}: {}", timeout().count(), text, name_(rank()), what));
      }
      throw PeerError(fmt::format("a peer was lost in {} on rank {}: {} ({})", text, name_(rank()), lost_rank(), what));
    }
  }

  // A rank that goes away leaves a word in the store, if it can.
  void note_gone(const std::string& how) noexcept {
    try {
      store_->set(fmt::format("{}/gone/{}", prefix_, rank()), how);
    } catch (const std::exception&) {
      // The store may be gone before us.
    }
  }
  std::string reason_of(int r) noexcept {
    try {
      const std::string key = fmt::format("{}/gone/{}", prefix_, r);
      if (!store_->check(key)) return "";
      const std::string how = store_->get(key, std::chrono::seconds(1));
      // Another survivor's complaint about its connections says nothing about who was first.
      if (how.find("onnection") != std::string::npos || how.find("imed out") != std::string::npos) return "";
      return fmt::format("rank {} {}", name_(r), how);
    } catch (const std::exception&) {
      return "";
    }
  }
  // With two ranks it can only be the other one.
  std::string lost_rank() const {
    return size() == 2 ? fmt::format("rank {} died or lost its connection", name_(1 - rank()))
                       : "a rank died or lost its connection";
  }

  std::shared_ptr<Store> store_;
  std::string prefix_;
  std::shared_ptr<gloo::Context> context_;
  RankNames name_;
  std::atomic<bool> failed_{false};
  std::mutex abort_mutex_;
  std::string abort_reason_;
  uint64_t posted_ = 0;
  WorkQueue queue_;  // last: its thread uses the others
};

}  // namespace

ProcessGroupPtr make_gloo_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                const std::string& prefix, const RankNames& names) {
  return std::make_shared<GlooGroup>(std::move(store), rank, size, timeout, prefix, names);
}

}  // namespace brigade::dist
