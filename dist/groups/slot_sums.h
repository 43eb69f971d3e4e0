// Sums of squares that the all-reduce of a bucket computes on the way.
//
// Ranks that share memory read the elements of all ranks anyway, before the mean overwrites them, so measuring them
// there costs no extra pass over memory. Each rank measures the share that it reduces (arithmetic.h) and writes its sums
// behind the elements of every rank, so afterwards all ranks have the same norms of all ranks' gradients. Memory
// layout: [elements | per slot: whether to measure this rank's elements | per measuring rank: sums by rank and slot].
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace brigade::dist {

class SlotSums {
 public:
  // For a bucket of `count` elements; slot i is [edges[i], edges[i + 1]).
  SlotSums(int rank, int ranks, DType dtype, int64_t count, std::vector<int64_t> edges);

  // The size of the bucket with the room behind it, in elements of its dtype.
  int64_t numel_with_room() const noexcept;
  // `memory`: 1-d, contiguous, numel_with_room() elements, accessible to the peers. Clears all requests.
  void place_in(const Tensor& memory);

  size_t slots() const noexcept { return edges_.size() - 1; }
  // Whether `elements` is the bucket that was placed with place_in().
  bool are_of(const Tensor& elements) const noexcept;
  // Called before the all-reduce: requests measurement of this rank's `slot`.
  void want(size_t slot) noexcept { wanted_of(elements_)[slot] = 1; }
  void want_none() noexcept;

  // --- For the group: sets false when the all-reduce is posted, then, once all ranks have arrived, whether all of them
  // measure.
  void set_taken(bool taken) noexcept { taken_ = taken; }
  class Measuring;

  // --- After the all-reduce: whether it has measured.
  bool taken() const noexcept { return taken_; }
  // The sum of squares of a rank's slot; 0 when that rank did not request it. Infinite or NaN exactly when an element
  // is. The same on all ranks.
  double sum(int rank, size_t slot) const noexcept;

 private:
  uint8_t* wanted_of(void* elements) const noexcept;
  // Indexed by the rank that owns the elements, and by slot.
  double* sums_by(int measured_by, void* elements) const noexcept;
  size_t bytes_of_sums() const noexcept;

  int rank_;
  int ranks_;
  DType dtype_;
  int64_t count_;
  std::vector<int64_t> edges_;
  void* elements_ = nullptr;
  std::vector<int64_t> bounds_;  // rank r measures elements [bounds[r], bounds[r + 1])
  bool taken_ = false;
};

// Measures one rank's share of the elements of all ranks, part by part, each part before it is reduced; a part lies in
// one slot, or behind all slots. `ranks`: the start of each rank's elements. The sums accumulate in this rank's own
// room.
class SlotSums::Measuring {
 public:
  // The share: elements [begin, end).
  Measuring(const SlotSums& sums, std::span<void* const> ranks, int64_t begin, int64_t end);
  // Advances to the next part, which ends at `limit` at the latest; returns false when everything up to `limit` is
  // done.
  bool next(int64_t limit);
  int64_t from() const noexcept { return from_; }
  int64_t to() const noexcept { return to_; }
  // Whether some rank requested this part.
  bool is_wanted() const noexcept;
  // Adds the sum over the part of `rank`'s elements; ignored unless that rank requested it.
  void add(size_t rank, double sum_of_squares) noexcept;
  // Measures the part.
  void measure();
  // Copies the sums to the other ranks.
  void finish();

 private:
  bool is_wanted_by(size_t rank) const noexcept;

  const SlotSums& sums_;
  std::span<void* const> ranks_;
  double* found_;  // indexed by rank and slot
  size_t first_;   // the first slot that the share touches
  size_t end_;     // one past the last slot that it touches
  size_t slot_;    // the part's slot, or one past the last
  int64_t from_;
  int64_t to_;
};

}  // namespace brigade::dist
