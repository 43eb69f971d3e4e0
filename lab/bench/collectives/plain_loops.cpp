// Uses the process group's reduction loops, so that the difference in time is the rest of the group's work.
#include <brigade/lab/bench/collectives/plain_loops.h>

#include <brigade/core/error.h>
#include <brigade/dist/groups/arithmetic.h>
#include <brigade/dist/groups/shm/shared_group.h>

#include <cstring>
#include <memory>

namespace brigade::lab::bench {

bool PlainLoops::fit(const dist::ProcessGroup& group) {
  return dynamic_cast<const dist::shm::SharedGroup*>(&group) != nullptr;
}

PlainLoops::PlainLoops(dist::ProcessGroup& group, const Tensor& data)
    : group_(dynamic_cast<dist::shm::SharedGroup*>(&group)), data_(data), reached_(data) {
  if (!group_) throw ValueError("plain loops need ranks that share memory, got a group of {}", group.backend());
  if (!group_->reaches(data)) reached_ = group_->allocate(data.numel(), data.dtype());
  const auto places = std::make_shared<std::vector<void*>>();
  group_->show(reached_, {}, places)->wait();
  places_ = *places;
}

void PlainLoops::run(dist::ReduceOp op) const {
  const bool copies = !reached_.is_same(data_);
  if (copies) std::memcpy(reached_.raw_data(), data_.raw_data(), data_.nbytes());
  group_->barrier();
  const auto [begin, end] = group_->share(data_.numel(), data_.dtype());
  dist::reduce_elements(places_, places_, data_.dtype(), op, begin, end);
  group_->barrier();
  if (copies) std::memcpy(data_.raw_data(), reached_.raw_data(), data_.nbytes());
}

}  // namespace brigade::lab::bench
