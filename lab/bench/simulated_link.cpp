// Passes every collective to the inner group, and delays its completion until the link is done.
#include <brigade/lab/bench/simulated_link.h>

#include <brigade/core/clock.h>
#include <brigade/core/error.h>
#include <brigade/dist/comm_hooks/comm_hook.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

namespace brigade::lab::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// One collective in flight.
struct Transfer {
  dist::WorkPtr inner;
  int64_t bytes = 0;
  dist::WorkTimes times = {};  // reduced: its end; 0 until all ranks have posted it
  std::function<void()> on_end = {};
};

// Shared by the group and its Works, which may outlive it. Used only by the rank's thread.
class Link {
 public:
  explicit Link(const LinkSpeed& speed) : schedule_(speed) {}

  std::shared_ptr<Transfer> add(dist::WorkPtr inner, int64_t bytes, std::function<void()> on_end) {
    auto transfer = std::make_shared<Transfer>(Transfer{std::move(inner), bytes, {}, std::move(on_end)});
    open_.push_back(transfer);
    return transfer;
  }

  // Sets the end of each transfer that all ranks are known to have posted, in the order of the calls, since an end
  // depends on the previous one.
  void settle() {
    while (!open_.empty() && open_.front()->inner->is_completed())
      settle_front();
  }

  // Sets the ends up to this transfer, waiting for the peers. Throws what the inner group throws.
  void settle_up_to(const Transfer& last, milliseconds timeout) {
    while (last.times.reduced == 0 && !open_.empty()) {
      open_.front()->inner->wait(timeout);
      settle_front();
    }
  }

 private:
  void settle_front() {
    Transfer& transfer = *open_.front();
    transfer.times = transfer.inner->times();
    // 0 after an error, which wait() throws.
    const int64_t arrived = transfer.times.arrived > 0 ? transfer.times.arrived : now_ns();
    transfer.times.reduced = schedule_.transfer(arrived, transfer.bytes);
    open_.pop_front();
  }

  LinkSchedule schedule_;
  std::deque<std::shared_ptr<Transfer>> open_;  // transfers without an end, oldest first
};

class LinkedWork final : public dist::Work {
 public:
  LinkedWork(std::shared_ptr<Link> link, std::shared_ptr<Transfer> transfer, milliseconds timeout)
      : link_(std::move(link)), transfer_(std::move(transfer)), timeout_(timeout) {}

  bool is_completed() override {
    link_->settle();
    if (transfer_->times.reduced == 0 || now_ns() < transfer_->times.reduced) return false;
    end();
    return true;
  }
  void wait() override { wait(timeout_); }
  void wait(milliseconds timeout) override {
    const int64_t until = now_ns() + nanoseconds(timeout).count();
    link_->settle_up_to(*transfer_, timeout);
    transfer_->inner->wait(timeout);  // throws its error, if any
    const int64_t ends = transfer_->times.reduced;
    const auto at = [](int64_t time) { return std::chrono::steady_clock::time_point(nanoseconds(time)); };
    std::this_thread::sleep_until(at(std::min(ends, until)));
    if (ends > until) {
      throw TimeoutError("the simulated link needs {} ms more for {} bytes than the time-out of {} ms; make it faster",
                         (ends - until) / 1'000'000, transfer_->bytes, timeout.count());
    }
    end();
  }
  dist::WorkTimes times() const override { return transfer_->times; }

 private:
  void end() {
    if (transfer_->on_end) std::exchange(transfer_->on_end, nullptr)();
  }

  std::shared_ptr<Link> link_;
  std::shared_ptr<Transfer> transfer_;
  milliseconds timeout_;
};

class LinkedGroup final : public dist::ProcessGroup {
 public:
  LinkedGroup(dist::ProcessGroupPtr inner, const LinkSpeed& speed)
      : ProcessGroup(inner->rank(), inner->size(), inner->timeout()),
        inner_(std::move(inner)),
        link_(std::make_shared<Link>(speed)) {}

  const char* backend() const noexcept override { return "simulated link"; }
  using ProcessGroup::allocate;
  Tensor allocate(int64_t numel, DType dtype) override { return inner_->allocate(numel, dtype); }
  void note_failure(std::string_view reason) override { inner_->note_failure(reason); }
  void note_exception(bool has_ended) override { inner_->note_exception(has_ended); }
  std::string lost_peer() override { return inner_->lost_peer(); }
  void abort(std::string_view reason) override { inner_->abort(reason); }

 protected:
  dist::WorkPtr do_all_reduce(const Tensor& tensor, const dist::CollectiveOptions& options) override {
    return carried(dist::CollectiveKind::AllReduce, tensor, tensor, options,
                   inner_->all_reduce(tensor, options, options.where));
  }
  dist::WorkPtr do_broadcast(const Tensor& tensor, const dist::CollectiveOptions& options) override {
    return carried(dist::CollectiveKind::Broadcast, tensor, tensor, options,
                   inner_->broadcast(tensor, options, options.where));
  }
  dist::WorkPtr do_all_gather(const Tensor& output, const Tensor& input,
                              const dist::CollectiveOptions& options) override {
    return carried(dist::CollectiveKind::AllGather, input, output, options,
                   inner_->all_gather(output, input, options, options.where));
  }
  dist::WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input,
                                  const dist::CollectiveOptions& options) override {
    return carried(dist::CollectiveKind::ReduceScatter, input, input, options,
                   inner_->reduce_scatter(output, input, options, options.where));
  }
  dist::WorkPtr do_barrier(const dist::CollectiveOptions& options) override {
    inner_->barrier(options, options.where);
    return dist::completed_work();
  }
  void do_note_activity(const dist::RankActivity& activity) override { inner_->note_activity(activity); }
  void do_progress() override {
    inner_->progress();
    link_->settle();
  }

 private:
  // `given`: this rank's contribution; `larger`: the tensor whose bytes the link carries.
  dist::WorkPtr carried(dist::CollectiveKind kind, const Tensor& given, const Tensor& larger,
                        const dist::CollectiveOptions& options, dist::WorkPtr inner) {
    const uint64_t number = record(kind, given, options).sequence;
    // A Work may outlive the group; then it leaves the group's recorder alone.
    auto on_end = [this, number, lives = std::weak_ptr<bool>(lives_)] {
      if (!lives.expired()) recorder().finish(number);
    };
    auto transfer = link_->add(std::move(inner), static_cast<int64_t>(larger.nbytes()), std::move(on_end));
    return std::make_shared<LinkedWork>(link_, std::move(transfer), timeout());
  }

  dist::ProcessGroupPtr inner_;
  std::shared_ptr<Link> link_;
  std::shared_ptr<bool> lives_ = std::make_shared<bool>(true);
};

// "20us" -> 20
double number_before(const std::string& text, std::string_view unit, const std::string& whole) {
  size_t read = 0;
  double value = -1;
  try {
    value = std::stod(text, &read);
  } catch (const std::exception&) {
    read = 0;
  }
  if (read == 0 || text.substr(read) != unit) {
    throw ValueError("a link is LATENCYus,BANDWIDTHGB/s (20us,10GB/s); got '{}', where '{}' is no number of {}", whole,
                     text, unit);
  }
  return value;
}

}  // namespace

int64_t LinkSpeed::nanoseconds(int64_t bytes) const noexcept {
  return std::llround(latency_us * 1e3 + static_cast<double>(bytes) / GBps);
}

LinkSpeed parse_link(const std::string& text) {
  const size_t comma = text.find(',');
  if (comma == std::string::npos) throw ValueError("a link is LATENCYus,BANDWIDTHGB/s (20us,10GB/s); got '{}'", text);
  const LinkSpeed speed{number_before(text.substr(0, comma), "us", text),
                        number_before(text.substr(comma + 1), "GB/s", text)};
  if (!(speed.latency_us >= 0) || !std::isfinite(speed.latency_us) || !(speed.GBps > 0))
    throw ValueError("a link has a latency of at least 0us and a bandwidth above 0GB/s; got '{}'", text);
  return speed;
}

std::string in_words(const LinkSpeed& speed) {
  return fmt::format("{:g} us + bytes / {:g} GB/s", speed.latency_us, speed.GBps);
}

void check_carries_link(const std::vector<std::string>& backends) {
  for (const std::string& backend : backends) {
    if (backend == "threads" || backend == "shm") continue;
    throw ValueError(
        "a simulated link is for the backends threads and shm, which know when all ranks have posted a "
        "collective; got {}",
        backend);
  }
}

int64_t LinkSchedule::transfer(int64_t arrived, int64_t bytes) noexcept {
  free_at_ = std::max(free_at_, arrived) + speed_.nanoseconds(bytes);
  return free_at_;
}

dist::ProcessGroupPtr over_link(dist::ProcessGroupPtr inner, const LinkSpeed& speed) {
  check_carries_link({inner->backend()});
  return std::make_shared<LinkedGroup>(std::move(inner), speed);
}

}  // namespace brigade::lab::bench
