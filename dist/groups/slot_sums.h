// Sums of squares that the all-reduce of a bucket takes on its way.
//
// Ranks that share memory read the elements of all ranks anyway, before the mean is written over them; measuring them there
// costs no pass over memory. What a rank finds in its share goes into room behind the elements of every rank, so afterwards
// all know the sizes of all ranks' gradients, and know them alike. Each rank measures the share that it reduces (shm/share.h):
// [elements | per slot: whether this rank's are to be measured | per rank that measured: sums by rank and slot].
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace brigade::dist {

class SlotSums {
 public:
  // Of a bucket of `count` elements; slot i is [edges[i], edges[i + 1]).
  SlotSums(int rank, int ranks, DType dtype, int64_t count, std::vector<int64_t> edges);

  // Elements of the bucket and of the room behind them, in elements of its dtype.
  int64_t numel_with_room() const noexcept;
  // 1-d, contiguous, numel_with_room() elements that the peers reach. Nothing is wanted yet.
  void place_in(const Tensor& memory);

  size_t slots() const noexcept { return edges_.size() - 1; }
  // Whether `elements` are the ones that have room behind them.
  bool are_of(const Tensor& elements) const noexcept;
  // Before the all-reduce: which of this rank's slots are to be measured.
  void want(size_t slot) noexcept { wanted_of(elements_)[slot] = 1; }
  void want_none() noexcept;

  // --- For the group: not when the all-reduce is posted, and then, once all ranks have come, whether all measure.
  void set_taken(bool taken) noexcept { taken_ = taken; }
  class Measuring;

  // --- After the all-reduce. Whether it has measured.
  bool taken() const noexcept { return taken_; }
  // Of a rank's slot; 0 where that rank did not want it. Infinite or NaN exactly when an element is. The same on all ranks.
  double sum(int rank, size_t slot) const noexcept;

 private:
  uint8_t* wanted_of(void* elements) const noexcept;
  // By rank that they are of, and slot.
  double* sums_by(int measured_by, void* elements) const noexcept;
  size_t bytes_of_sums() const noexcept;

  int rank_;
  int ranks_;
  DType dtype_;
  int64_t count_;
  std::vector<int64_t> edges_;
  void* elements_ = nullptr;
  std::vector<int64_t> bounds_;  // the rank r measures elements [bounds[r], bounds[r + 1])
  bool taken_ = false;
};

// One rank's share of the elements of all, part by part, each before it is reduced; a part lies in one slot, or behind the
// slots. `ranks`: where the elements of each begin. What is found gathers in this rank's own room.
class SlotSums::Measuring {
 public:
  // The share: elements [begin, end).
  Measuring(const SlotSums& sums, std::span<void* const> ranks, int64_t begin, int64_t end);
  // Goes on to the next part, which ends at `limit` at the latest; false when all up to there has been.
  bool next(int64_t limit);
  int64_t from() const noexcept { return from_; }
  int64_t to() const noexcept { return to_; }
  // Whether some rank wants this part to be measured.
  bool is_wanted() const noexcept;
  // Of the part, as its rank has it; left out unless that rank wants it.
  void add(size_t rank, double sum_of_squares) noexcept;
  // Measures the part.
  void measure();
  // Tells the other ranks.
  void finish();

 private:
  bool is_wanted_by(size_t rank) const noexcept;

  const SlotSums& sums_;
  std::span<void* const> ranks_;
  double* found_;  // by rank and slot
  size_t first_;   // the first slot that the share touches,
  size_t end_;     // and behind the last
  size_t slot_;    // that of the part, or behind the last
  int64_t from_;
  int64_t to_;
};

}  // namespace brigade::dist
