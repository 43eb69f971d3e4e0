// Layout of the sums, and the measuring of a share.
#include <brigade/dist/groups/slot_sums.h>

#include <brigade/dist/groups/arithmetic.h>
#include <brigade/kernels/bucket.h>

#include <algorithm>
#include <cstring>

namespace brigade::dist {
namespace {

constexpr size_t kCacheLine = 64;

size_t whole_lines(size_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

}  // namespace

SlotSums::SlotSums(int rank, int ranks, DType dtype, int64_t count, std::vector<int64_t> edges)
    : rank_(rank), ranks_(ranks), dtype_(dtype), count_(count), edges_(std::move(edges)) {
  for (int r = 0; r < ranks; ++r)
    bounds_.push_back(shm::share_of(r, ranks, count, dtype).first);
  bounds_.push_back(count);
}

size_t SlotSums::bytes_of_sums() const noexcept {
  return whole_lines(static_cast<size_t>(ranks_) * slots() * sizeof(double));
}

int64_t SlotSums::numel_with_room() const noexcept {
  const size_t bytes = whole_lines(static_cast<size_t>(count_) * itemsize(dtype_)) + whole_lines(slots()) +
                       static_cast<size_t>(ranks_) * bytes_of_sums();
  return static_cast<int64_t>(bytes / itemsize(dtype_));
}

void SlotSums::place_in(const Tensor& memory) {
  elements_ = memory.raw_data();
  want_none();
}

bool SlotSums::are_of(const Tensor& elements) const noexcept {
  return elements.raw_data() == elements_ && elements.numel() == count_ && elements.dtype() == dtype_;
}

void SlotSums::want_none() noexcept {
  if (slots() > 0) std::memset(wanted_of(elements_), 0, slots());
  taken_ = false;
}

uint8_t* SlotSums::wanted_of(void* elements) const noexcept {
  return static_cast<uint8_t*>(elements) + whole_lines(static_cast<size_t>(count_) * itemsize(dtype_));
}

double* SlotSums::sums_by(int measured_by, void* elements) const noexcept {
  uint8_t* begin = wanted_of(elements) + whole_lines(slots()) + static_cast<size_t>(measured_by) * bytes_of_sums();
  return reinterpret_cast<double*>(begin);
}

double SlotSums::sum(int rank, size_t slot) const noexcept {
  if (!taken() || edges_[slot] == edges_[slot + 1]) return 0;
  // The last rank whose share begins at or before the slot, then the ranks whose shares begin within it. Shares may be
  // empty.
  auto by = static_cast<size_t>(std::ranges::upper_bound(bounds_, edges_[slot]) - bounds_.begin()) - 1;
  double total = 0;
  for (; by < static_cast<size_t>(ranks_) && bounds_[by] < edges_[slot + 1]; ++by) {
    if (bounds_[by] < bounds_[by + 1])
      total += sums_by(static_cast<int>(by), elements_)[static_cast<size_t>(rank) * slots() + slot];
  }
  return total;
}

SlotSums::Measuring::Measuring(const SlotSums& sums, std::span<void* const> ranks, int64_t begin, int64_t end)
    : sums_(sums),
      ranks_(ranks),
      found_(sums.sums_by(sums.rank_, ranks[static_cast<size_t>(sums.rank_)])),
      first_(static_cast<size_t>(std::ranges::upper_bound(sums.edges_, begin) - sums.edges_.begin()) - 1),
      end_(std::clamp(static_cast<size_t>(std::ranges::lower_bound(sums.edges_, end) - sums.edges_.begin()), first_,
                      std::max(first_, sums.slots()))),
      slot_(first_),
      from_(begin),
      to_(begin) {
  for (size_t r = 0; r < ranks.size(); ++r)
    std::fill(found_ + r * sums.slots() + first_, found_ + r * sums.slots() + end_, 0.0);
}

bool SlotSums::Measuring::next(int64_t limit) {
  from_ = to_;
  if (from_ >= limit) return false;
  while (slot_ < sums_.slots() && sums_.edges_[slot_ + 1] <= from_)
    ++slot_;
  to_ = slot_ < sums_.slots() ? std::min(limit, sums_.edges_[slot_ + 1]) : limit;
  return true;
}

bool SlotSums::Measuring::is_wanted_by(size_t rank) const noexcept {
  return slot_ < sums_.slots() && sums_.wanted_of(ranks_[rank])[slot_] != 0;
}

bool SlotSums::Measuring::is_wanted() const noexcept {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (is_wanted_by(r)) return true;
  }
  return false;
}

void SlotSums::Measuring::add(size_t rank, double sum_of_squares) noexcept {
  if (is_wanted_by(rank)) found_[rank * sums_.slots() + slot_] += sum_of_squares;
}

void SlotSums::Measuring::measure() {
  const size_t size = itemsize(sums_.dtype_);
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (!is_wanted_by(r)) continue;
    const void* data = static_cast<const char*>(ranks_[r]) + static_cast<size_t>(from_) * size;
    add(r, kernels::sum_of_squares(data, sums_.dtype_, to_ - from_));
  }
}

void SlotSums::Measuring::finish() {
  for (void* peer : ranks_) {
    double* sums = sums_.sums_by(sums_.rank_, peer);
    if (sums == found_) continue;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const size_t row = r * sums_.slots();
      std::copy(found_ + row + first_, found_ + row + end_, sums + row + first_);
    }
  }
}

}  // namespace brigade::dist
