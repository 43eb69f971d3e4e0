// A Work that forwards to several works.
#include <brigade/dist/groups/combined_work.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

namespace {

class CombinedWork final : public Work {
 public:
  explicit CombinedWork(std::vector<WorkPtr> works) : works_(std::move(works)) {}

  // Queries all of them, since each query may make progress.
  bool is_completed() override {
    bool all = true;
    for (const WorkPtr& work : works_)
      all = work->is_completed() && all;
    return all;
  }
  void wait() override {
    for (const WorkPtr& work : works_)
      work->wait();
  }
  void wait(std::chrono::milliseconds timeout) override {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + timeout;
    for (const WorkPtr& work : works_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
      work->wait(std::max(left, std::chrono::milliseconds(0)));
    }
  }
  WorkTimes times() const override {
    WorkTimes last;
    for (const WorkPtr& work : works_) {
      const WorkTimes each = work->times();
      last = {std::max(last.arrived, each.arrived), std::max(last.reduced, each.reduced)};
    }
    return last;
  }
  DeviceSpan on_device() const override {
    DeviceSpan span;
    for (const WorkPtr& work : works_) {
      const DeviceSpan each = work->on_device();
      if (each.ended == 0) return {};
      span = {span.began == 0 ? each.began : std::min(span.began, each.began), std::max(span.ended, each.ended)};
    }
    return span;
  }

 private:
  const std::vector<WorkPtr> works_;
};

}  // namespace

WorkPtr combined_work(std::vector<WorkPtr> works) { return std::make_shared<CombinedWork>(std::move(works)); }

}  // namespace brigade::dist
