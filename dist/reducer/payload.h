// The payload of a bucket, what one all-reduce carries: [gradient slots | one flag per parameter |
// words].
//
// The flags say who used a parameter; the words say how the rank is: whether its backward reached
// anything, failed, is a shadow of join(), how far it is, how large its gradients are. All travel
// as averages in the bucket's own dtype.
//
// What decides whether ranks talk further is read from the averages alone, never compared with what
// this rank holds itself: averages are the same bits on every rank, so all ranks decide alike.
//
// Flags, truths and numbers travel as bits, of which the ranks that have set each are counted
// exactly. A number is the same on all ranks when each of its bits is set by none or by all. As many
// counts share an element as its precision holds: 11 in float32 between two ranks, one in bfloat16
// from 8 ranks on. From 257 ranks on a count of bfloat16 is spread over several elements, each for
// some of the ranks.
//
// What is measured (times, batches, norms) travels with its square, and its variance is compared
// with a threshold. A half type is too coarse for times and batches: there they travel as the digits
// of a whole number. The base is the largest power of two whose digits, summed over the ranks,
// survive the average exactly: 128 for two ranks in bfloat16 (8 bits of precision), so a batch is 3
// elements and its square 6.
//
// A group that reduces on the device itself (NCCL) has the gradients alone: flags and words are a
// float32 tensor of the host, which the group reduces there. So they are exact for any world, and
// reading them waits for the peers' hosts, never for a device.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/slot_sums.h>
#include <brigade/dist/reducer/bucket.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace brigade::dist {

enum class Word : uint8_t {
  // Truths: how many ranks say so.
  Present,  // the backward reached a parameter of the wrapper, or earlier ones under no_sync did
  Failed,   // the backward ended with an error
  Joined,   // a shadow: this rank has no data left
  Changed,  // the used set is not the one that was recorded (static_graph)
  Scaled,   // a gradient is that of a scaled loss; where a communication hook is looked at
  // Numbers, modulo 2^kNumberBits: do all ranks hold the same?
  Round,     // of the reduced backward
  Gathered,  // backwards whose gradients are in the sums
  Likeness,  // of this rank's gradients: a hash
  Factor,    // the number that this rank's loss was multiplied by: a hash
  // These four are whole numbers below 2^20 and their squares; what is larger counts as that.
  Time,         // from the start of backward to the launch of this bucket, in ms
  TimeSquared,  //
  Rows,         // samples in this rank's batch
  RowsSquared,  //
  // These four as kernels::bucket_words writes them. Where the host reduces flags and words, they
  // are about the backward before: nobody waits for the numbers of this one. Where the all-reduce
  // measures (slot_sums()) they say what was known before it: no norm, and an infinite loss.
  Norm,         // log2 of the sum of squares of this rank's gradients
  NormSquared,  //
  Silent,       // no statement about the numbers
  NonFinite,    // a gradient of this rank is infinite or NaN
  Probe,        // kernels::probe() of this rank's gradients
};
inline constexpr int kNumberBits = 11;

// How many elements flags and words of a bucket take, where its host reduces them with the gradients.
int64_t tail_numel(DType dtype, int ranks, size_t parameters);

// How counts of ranks travel in elements of a dtype, exactly.
struct CountLayout {
  CountLayout(DType dtype, int ranks) noexcept;
  int bits;             // of a count, 0 to `ranks`
  int64_t per_element;  // counts in an element
  int64_t shares;  // elements that a count is spread over, where one is too coarse: rank r counts in number r % shares

  // Elements of that many counts.
  int64_t numel(int64_t counts) const noexcept { return (counts + per_element - 1) / per_element * shares; }
};

class Payload {
 public:
  // Memory of the group, cleared. On a device, `reading` is the stream on which receive() reads.
  // `measured`: with room for sums of squares, where the group takes them (slot_sums()).
  Payload(ProcessGroup& group, const BucketLayout& layout, std::shared_ptr<DeviceStream> reading = nullptr,
          bool measured = false);

  // Without flags and words where the host reduces them.
  const Tensor& whole() const noexcept { return whole_; }
  // The slots alone, 1-d.
  const Tensor& gradients() const noexcept { return gradients_; }
  // Flags and words alone, 1-d.
  const Tensor& tail() const noexcept { return tail_; }
  // Whether they are no part of whole(), but a tensor of the CPU beside a bucket of a device.
  bool has_tail_on_host() const noexcept { return on_device() && tail_.device() == Device(); }

  // --- Before the all-reduce. On a device flags and words are kept in host memory until send().
  void set_flag(size_t index, bool on);
  // A truth is on where `value` is not 0. Not for numbers.
  void set(Word word, double value);
  void set_number(Word word, uint64_t number);
  // What is measured: `word` and the one after it.
  void set_with_square(Word word, double value);

  // What the all-reduce itself measures, given to it with the options; null where it does not.
  const std::shared_ptr<SlotSums>& slot_sums() const noexcept { return slot_sums_; }

  bool on_device() const noexcept { return whole_.device() != Device(); }
  // On a device: flags and words follow the gradients there, behind what is queued for those.
  // `measured` (empty: none) says how many elements of each slot are to be measured: the words
  // Norm, Silent and NonFinite are then made there. Nothing waits. `non_finite`: something else of
  // this rank is not finite. Where the host reduces the words, this only measures.
  void send(std::span<const int64_t> measured, bool non_finite);
  // Makes the word Probe, of what the slots hold now; after send(). Where the host reduces the words
  // it is measured only, and set by set_probe().
  void send_probe();
  // Where the host reduces the words, once receive_sums() has returned.
  void set_probe();
  // Once `reduced` is known to be on its way: waits for flags and words. On a device also for sums,
  // on a stream of its own, not for the one that is current; where the host reduces the words, it
  // waits for `reduced` alone.
  void receive(Work& reduced);
  // Waits until the sums of squares of the latest send() are here: receive() has done so, but where
  // the host reduces the words.
  void receive_sums() const;
  // What send() measured of this rank: the sum of squares of a slot.
  double sum_of_squares(size_t index) const;

  // kernels::probe() of what the slots hold now; waits for a device.
  double probe() const;

  // --- After the all-reduce (Avg over `ranks`) and receive().
  // Each gives all ranks the same answer.
  int flag_count(size_t index) const;
  // Ranks with that truth; of Silent and NonFinite exact up to whether there is one.
  int count(Word word) const;
  // Whether all ranks have set a number to the same value, modulo 2^kNumberBits.
  bool all_equal(Word number) const;
  double mean(Word word) const;
  // Variance over the ranks of a value that travelled with its square, at least 0.
  double variance(Word word) const;

 private:
  // Of a measured word.
  int64_t position(Word word) const noexcept { return positions_[static_cast<size_t>(word) - kFirstMeasured]; }
  // How many elements it takes.
  int64_t width(Word word) const noexcept {
    return positions_[static_cast<size_t>(word) - kFirstMeasured + 1] - position(word);
  }
  void place_words(DType dtype);
  void set_bits(int64_t first, int64_t count, uint64_t bits);
  template <class F>
  bool for_counts(int64_t first, int64_t count, F&& f) const;
  // This rank's element of the shares at `first`, and the sum over the ranks of what these hold.
  void write_share(int64_t first, double value);
  uint64_t sum_of_shares(int64_t first) const;
  Tensor sums_of_slots() const;
  void copy_sums_to_host();

  Tensor whole_;
  Tensor gradients_;
  Tensor tail_;
  std::shared_ptr<SlotSums> slot_sums_;
  int64_t flags_;
  int rank_, ranks_;
  CountLayout counts_;
  std::vector<uint64_t> own_bits_;  // of the words, by element and as they lie there
  int digit_bits_ = 0;              // of the base, where words travel as digits
  static constexpr size_t kFirstMeasured = static_cast<size_t>(Word::Time);
  static constexpr size_t kMeasured = static_cast<size_t>(Word::Probe) + 1 - kFirstMeasured;
  std::array<int64_t, kMeasured + 1> positions_ = {};  // of each measured word in the tail, and its end
  Tensor host_tail_;                                   // tail_ itself where that is on the CPU
  // On a device: sums of squares per slot, and the probe, [flags + 1] float64, there and here.
  Tensor sums_;
  Tensor host_sums_;
  std::vector<int64_t> offsets_;
  std::shared_ptr<DeviceStream> reading_;
  std::unique_ptr<DeviceEvent> arrived_;  // in host memory
};

}  // namespace brigade::dist
