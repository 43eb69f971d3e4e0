// The payload of a bucket, what one all-reduce carries: [gradient slots | one flag per parameter |
// words].
//
// The flags say who used a parameter; the words say how the rank is: whether its backward reached
// anything, failed, is a shadow of join(), how far it is, how large its gradients are. All travel
// as averages in the bucket's own dtype: with n ranks, n times the mean of a flag is the number of
// ranks that set it. A value and its square travel together where the ranks have to agree: all
// ranks hold the same value exactly when the variance is zero.
//
// A half type is too coarse for times and batches: in those buckets such a word travels as the
// digits of a whole number, one element each. The base is the largest power of two whose digits,
// summed over the ranks, survive the average exactly: 128 for two ranks in bfloat16 (8 bits of
// precision), so a batch is 3 elements and its square 6.
//
// A group that rounds at each addition (NCCL) would lose flags that way: n additions of 1/n have an
// error of n roundings, and a count one of n times that. Where that could be half a rank, flags and
// words have a float32 tensor of their own and travel as sums, which are exact up to 2^24.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/reducer/bucket.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace brigade::dist {

enum class Word : uint8_t {
  Present,          // the backward reached a parameter of the wrapper, or earlier ones under no_sync did
  Failed,           // the backward ended with an error
  Joined,           // a shadow: this rank has no data left
  Changed,          // the used set is not the one that was recorded (static_graph)
  Round,            // number of the reduced backward, modulo something small
  RoundSquared,     //
  Gathered,         // backwards whose gradients are in the sums, modulo the same
  GatheredSquared,  //
  Likeness,         // of this rank's gradients: a hash, modulo the same
  LikenessSquared,  //
  // These four are whole numbers below 2^20 and their squares; what is larger counts as that.
  Time,         // from the start of backward to the launch of this bucket, in ms
  TimeSquared,  //
  Rows,         // samples in this rank's batch
  RowsSquared,  //
  // These four as kernels::bucket_words writes them.
  Norm,         // log2 of the sum of squares of this rank's gradients
  NormSquared,  //
  Silent,       // no statement about the numbers
  NonFinite,    // a gradient of this rank is infinite or NaN
  Probe,        // kernels::probe() of this rank's gradients
};
inline constexpr int64_t kWords = 19;

class Payload {
 public:
  // Memory of the group, cleared. On a device, `reading` is the stream on which receive() reads.
  Payload(ProcessGroup& group, const BucketLayout& layout, std::shared_ptr<DeviceStream> reading = nullptr);

  // Without flags and words where they have a tensor of their own.
  const Tensor& whole() const noexcept { return whole_; }
  // The slots alone, 1-d.
  const Tensor& gradients() const noexcept { return gradients_; }
  // Flags and words alone, 1-d.
  const Tensor& tail() const noexcept { return tail_; }
  // Whether they are no part of whole().
  bool has_own_tail() const noexcept { return has_own_tail_; }
  // How the tail is to be reduced, where it is alone.
  ReduceOp tail_op() const noexcept { return has_own_tail_ ? ReduceOp::Sum : ReduceOp::Avg; }

  // --- Before the all-reduce. On a device flags and words are kept in host memory until send().
  void set_flag(size_t index, double value);
  void set(Word word, double value);
  // `word` and the one after it.
  void set_with_square(Word word, double value);

  bool on_device() const noexcept { return whole_.device() != Device(); }
  // On a device: flags and words follow the gradients there, behind what is queued for those.
  // `measured` (empty: none) says how many elements of each slot are to be measured: the words
  // Norm, Silent and NonFinite are then made there. Nothing waits. `non_finite`: something else of
  // this rank is not finite.
  void send(std::span<const int64_t> measured, bool non_finite);
  // Makes the word Probe; after send().
  void send_probe();
  // On a device, once `reduced` is known to be on its way: waits for flags, words and sums, not for
  // the stream that is current. On the CPU it waits for `reduced`.
  void receive(Work& reduced);
  // What send() measured of this rank, after receive(): the sum of squares of a slot.
  double sum_of_squares(size_t index) const;

  // kernels::probe() of what the slots hold now; waits for a device.
  double probe() const;

  // --- After the all-reduce (Avg, or tail_op(), over `ranks`) and receive().
  int flag_count(size_t index, int ranks) const;
  int count(Word word, int ranks) const;
  double mean(Word word) const;
  // Variance over the ranks of a value that travelled with its square, at least 0.
  double variance(Word word) const;
  // Whether all ranks hold `own`, within the precision of the dtype.
  bool all_equal(Word word, double own) const;
  // `number` modulo the largest power of two whose square is exact in the dtype.
  double countable(uint64_t number) const;

 private:
  int64_t position(Word word) const noexcept { return positions_[static_cast<size_t>(word)]; }
  // How many elements it takes.
  int64_t width(Word word) const noexcept { return positions_[static_cast<size_t>(word) + 1] - position(word); }
  void place_words(DType dtype, int ranks);

  Tensor whole_;
  Tensor gradients_;
  Tensor tail_;
  int64_t flags_;
  int ranks_;
  bool has_own_tail_ = false;
  int digit_bits_ = 0;                              // of the base, where words travel as digits
  std::array<int64_t, kWords + 1> positions_ = {};  // of each word in the tail, and its end
  Tensor host_tail_;                                // tail_ itself on the CPU
  // On a device: sums of squares per slot, [flags] float64, there and here.
  Tensor sums_;
  Tensor host_sums_;
  std::vector<int64_t> offsets_;
  std::shared_ptr<DeviceStream> reading_;
  std::unique_ptr<DeviceEvent> arrived_;  // in host memory
};

}  // namespace brigade::dist
