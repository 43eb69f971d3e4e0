// The word that the ranks exchange, and the rounds of a rank that has no data left.
#include <brigade/dist/ddp/join.h>

#include <brigade/dist/checks/model.h>

#include <algorithm>

namespace brigade::dist {

Join::Join(DistributedDataParallelBase& ddp, JoinOptions options, SourceLocation where)
    : ddp_(ddp), options_(options), where_(where) {
  if (ddp_.join_) throw DistError("join: this wrapper is inside another join already", where);
  ddp_.join_ = this;
  ddp_.reducer_->divide_by_participants(!options_.divide_by_initial_world_size);
  ddp_.reducer_->before_round([this] { announce(kBackward, where_); });
  if (ddp_.step_check_) ddp_.step_check_->pause(true);
}

Join::~Join() {
  ddp_.join_ = nullptr;
  ddp_.reducer_->divide_by_participants(false);
  ddp_.reducer_->before_round(nullptr);
  if (ddp_.step_check_) ddp_.step_check_->pause(false);
}

int Join::source(const std::vector<int64_t>& events) {
  for (auto r = static_cast<int>(events.size()); r-- > 0;) {
    if (events[static_cast<size_t>(r)] != kFinished) return r;
  }
  return -1;
}

std::vector<int64_t> Join::announce(Event event, SourceLocation where) {
  ProcessGroup& group = ddp_.group();
  const Tensor own = group.allocate(1, kInt64);
  const Tensor all = group.allocate(group.size(), kInt64);
  *own.data_ptr<int64_t>() = event;
  group.all_gather(all, own, {.description = "join: who has data, and what comes next"}, where)->wait();
  std::vector<int64_t> events(all.data_ptr<int64_t>(), all.data_ptr<int64_t>() + group.size());
  const bool someone_finished = std::find(events.begin(), events.end(), kFinished) != events.end();
  const int with_data = source(events);
  if (options_.throw_on_early_termination && someone_finished && with_data >= 0) {
    if (event == kFinished) throw DistError(where, "Rank {} exhausted all inputs.", group.rank());
    throw DistError("Detected at least one rank that exhausted inputs. Throwing across all ranks.", where);
  }
  if (with_data < 0) return events;
  last_source_ = with_data;
  for (size_t r = 0; r < events.size(); ++r) {
    const int64_t expected = events[static_cast<size_t>(with_data)];
    if (events[r] == kFinished || events[r] == expected) continue;
    const auto name = [](int64_t e) {
      return e == kForward ? "a forward that broadcasts buffers" : "a reduced backward";
    };
    throw DistError(where,
                    "join: rank {} begins {}, rank {} {}; ranks with data must do the same things in the same order", r,
                    name(events[r]), with_data, name(expected));
  }
  return events;
}

void Join::finish(SourceLocation where) {
  if (finished_) return;
  finished_ = true;
  while (true) {
    const std::vector<int64_t> events = announce(kFinished, where);
    const int from = source(events);
    if (from < 0) break;
    if (events[static_cast<size_t>(from)] == kForward) {
      ddp_.broadcast_buffers_from(from, where);
    } else {
      const auto restore = ddp_.reducer_;
      restore->before_round(nullptr);
      restore->shadow_round(where);
      restore->before_round([this] { announce(kBackward, where_); });
    }
  }
  ddp_.broadcast_model_from(last_source_, where);
}

}  // namespace brigade::dist
