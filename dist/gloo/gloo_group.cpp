// Ranks on any hosts, over TCP, by Gloo. Gloo's calls block, so one thread per group runs them in order; a Work waits
// for its turn.
#include <brigade/core/factory.h>
#include <brigade/dist/process_group.h>
#include <brigade/dist/shm/reduce.h>
#include <brigade/dist/store.h>
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

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

namespace brigade::dist {

namespace {

// Gloo meets through our store.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(std::shared_ptr<dist::Store> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(prefix_ + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_->get(prefix_ + key, std::chrono::seconds(30));
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, std::chrono::seconds(30)); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    for (const std::string& key : keys)
      store_->get(prefix_ + key, timeout);
  }

 private:
  std::shared_ptr<dist::Store> store_;
  std::string prefix_;
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

struct Job {
  std::function<void()> run;
  std::string description;
  bool complete = false;
  std::exception_ptr error;
};

// The queue and the thread that empties it; shared with the Works, which may outlive the group.
struct Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> jobs;
  bool stop = false;
};

class GlooWork final : public Work {
 public:
  GlooWork(std::shared_ptr<Queue> queue, std::shared_ptr<Job> job, std::chrono::milliseconds timeout)
      : queue_(std::move(queue)), job_(std::move(job)), timeout_(timeout) {}
  bool is_completed() override {
    std::lock_guard lock(queue_->mutex);
    return job_->complete;
  }
  void wait() override {
    // Gloo has the group's timeout itself; this one is for a queue that does not move.
    wait(timeout_ * 2 + std::chrono::seconds(5));
  }
  void wait(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(queue_->mutex);
    if (!queue_->changed.wait_for(lock, timeout, [&] { return job_->complete; })) {
      throw TimeoutError(fmt::format("timed out after {} ms waiting for {}", timeout.count(), job_->description));
    }
    if (job_->error) std::rethrow_exception(job_->error);
  }

 private:
  std::shared_ptr<Queue> queue_;
  std::shared_ptr<Job> job_;
  std::chrono::milliseconds timeout_;
};

class GlooGroup final : public ProcessGroup {
 public:
  GlooGroup(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
            const std::string& prefix)
      : ProcessGroup(rank, size, timeout), store_(std::move(store)), prefix_(prefix) {
    gloo::transport::tcp::attr attributes;
    const char* interface = std::getenv("BRIGADE_SOCKET_IFNAME");
    if (!interface) interface = std::getenv("GLOO_SOCKET_IFNAME");
    const char* master = std::getenv("MASTER_ADDR");
    if (interface) {
      attributes.iface = interface;
    } else if (!master || std::strncmp(master, "127.", 4) == 0 || std::strcmp(master, "localhost") == 0) {
      attributes.hostname = "127.0.0.1";
    }
    try {
      auto device = gloo::transport::tcp::CreateDevice(attributes);
      auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
      context->setTimeout(timeout);
      GlooStore meeting(store_, prefix + "/gloo/");
      context->connectFullMesh(meeting, device);
      context_ = context;
    } catch (const gloo::Exception& error) {
      throw DistError(fmt::format("gloo: rank {} cannot connect to its peers: {}", rank, error.what()));
    } catch (const TimeoutError& error) {
      throw TimeoutError(
          fmt::format("rendezvous: rank {} waited {} ms for its peers: {}", rank, timeout.count(), error.what()));
    }
    thread_ = std::thread([queue = queue_] { run(*queue); });
  }

  ~GlooGroup() override {
    if (!failed_)
      note_gone(std::uncaught_exceptions() > 0 ? "left while an exception was in flight" : "left the group");
    {
      std::lock_guard lock(queue_->mutex);
      queue_->stop = true;
    }
    queue_->changed.notify_all();
    thread_.join();
  }

  const char* backend() const noexcept override { return "gloo"; }
  Tensor allocate(int64_t numel, DType dtype) override { return empty({numel}, dtype); }

  void abort(std::string_view reason) override {
    if (failed_.exchange(true)) return;
    note_gone(fmt::format("failed: {}", reason));
    // Gloo cannot end a call from outside; breaking the connections ends those of this rank and of its peers.
    context_->closeConnections();
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
    auto job = std::make_shared<Job>();
    job->description = text;
    if (size() > 1 && !(tensor.defined() && tensor.numel() == 0)) {
      job->run = [this, run = std::move(run), text] { translate_errors(run, text); };
    } else if (size() == 1) {
      job->run = std::move(run);
    }
    {
      std::lock_guard lock(queue_->mutex);
      queue_->jobs.push_back(job);
    }
    queue_->changed.notify_all();
    return std::make_shared<GlooWork>(queue_, std::move(job), timeout());
  }

  // Gloo speaks of sockets; users want to know which rank it was.
  void translate_errors(const std::function<void()>& run, const std::string& text) {
    try {
      run();
    } catch (const gloo::Exception& error) {
      failed_ = true;
      const std::string what = error.what();
      std::string gone;
      for (int r = 0; r < size() && gone.empty(); ++r) {
        if (r != rank()) gone = reason_of(r);
      }
      note_gone(fmt::format("failed: {}", what));
      if (!gone.empty()) throw PeerError(fmt::format("{}; rank {} was waiting for it in {}", gone, rank(), text));
      if (what.find("imed out") != std::string::npos) {
        throw TimeoutError(
            fmt::format("timed out after {} ms in {} on rank {}: {}", timeout().count(), text, rank(), what));
      }
      throw PeerError(fmt::format("a peer was lost in {} on rank {}: {} ({})", text, rank(), lost_rank(what), what));
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
      return fmt::format("rank {} {}", r, how);
    } catch (const std::exception&) {
      return "";
    }
  }
  // With two ranks it can only be the other one.
  std::string lost_rank(const std::string&) const {
    return size() == 2 ? fmt::format("rank {} died or lost its connection", 1 - rank())
                       : "a rank died or lost its connection";
  }

  static void run(Queue& queue) {
    std::unique_lock lock(queue.mutex);
    while (true) {
      queue.changed.wait(lock, [&] { return queue.stop || !queue.jobs.empty(); });
      if (queue.jobs.empty()) return;
      const std::shared_ptr<Job> job = queue.jobs.front();
      queue.jobs.pop_front();
      lock.unlock();
      std::exception_ptr error;
      try {
        if (job->run) job->run();
      } catch (...) {
        error = std::current_exception();
      }
      job->run = nullptr;  // drops the tensors
      lock.lock();
      job->error = error;
      job->complete = true;
      queue.changed.notify_all();
    }
  }

  std::shared_ptr<Store> store_;
  std::string prefix_;
  std::shared_ptr<gloo::Context> context_;
  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
  std::atomic<bool> failed_{false};
  uint64_t posted_ = 0;
};

}  // namespace

ProcessGroupPtr make_gloo_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                const std::string& prefix) {
  return std::make_shared<GlooGroup>(std::move(store), rank, size, timeout, prefix);
}

}  // namespace brigade::dist
