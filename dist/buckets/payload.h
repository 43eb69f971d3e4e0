// The payload of a bucket, carried by one all-reduce: [gradient slots | one flag per parameter | words].
//
// The flags count the ranks that used a parameter; the words describe the rank: whether its backward reached
// anything, failed, or is a shadow of join(), and how far it is. All travel as averages in the bucket's own dtype.
//
// Whether ranks communicate further is decided from the averages alone, never by comparing them with this rank's own
// values: averages are the same bits on every rank, so all ranks decide alike.
//
// Flags, truths and numbers travel as bits, and the ranks that have set each bit are counted exactly. A number is the
// same on all ranks if each of its bits is set by no rank or by all. As many counts share an element as its precision
// holds: 11 in float32 between two ranks, one in bfloat16 from 8 ranks on. From 257 ranks on a bfloat16 count is
// spread over several elements, each for some of the ranks.
//
// Besides the words of the reducer there are registered ones (words.h), of its meter and of statistics.
// Measures travel with their squares, and their variance is compared with a threshold. A half type is too
// coarse for measures: there they travel as the digits of a whole number. The base is the largest power of two whose
// digits, summed over the ranks, survive the average exactly: 128 for two ranks in bfloat16 (8 bits of precision), so
// a measure takes 3 elements and its square 6.
//
// If a group reduces on the device itself (NCCL), the payload holds the gradients alone: flags and words are a
// float32 tensor on the host, which the group reduces there. They are therefore exact for any world size, and reading
// them waits for the peers' hosts, never for a device.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/buckets/bucket.h>
#include <brigade/dist/buckets/words.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/slot_sums.h>

#include <memory>
#include <span>
#include <vector>

namespace brigade::dist {

enum class Word : uint8_t {
  // Truths: the ranks that set them are counted.
  Present,  // the backward reached a parameter of the wrapper, or earlier ones under no_sync did
  Failed,   // the backward ended with an error
  Joined,   // a shadow: this rank has no data left
  Changed,  // the used set differs from the recorded one (static_graph)
  // A number: of the reduced backward, and which shared parameters are averaged in it.
  Round,
};

// How counts of ranks are encoded exactly in elements of a dtype.
struct CountLayout {
  CountLayout(DType dtype, int ranks) noexcept;
  int bits;             // per count, 0 to `ranks`
  int64_t per_element;  // counts per element
  int64_t shares;       // elements that a count is spread over if one is too coarse: rank r counts in number r % shares

  // Number of elements for that many counts.
  int64_t numel(int64_t counts) const noexcept { return (counts + per_element - 1) / per_element * shares; }
};

// Where flags and words are in the tail of a payload.
struct TailLayout {
  // Of a bucket of `parameters`, if the tail has that dtype.
  TailLayout(DType dtype, int ranks, size_t parameters, std::span<const WordKind> registered);

  // Of a truth or number: its first bit. Of the others: its first element; of a measure also that of its square.
  struct Position {
    WordKind kind;
    int64_t first = 0, square = 0;
  };
  CountLayout counts;
  int64_t flags;       // how many
  int64_t bits;        // of truths and numbers, which follow the flags
  int digit_bits = 0;  // per digit of a measure; 0 if each measure is one element
  int64_t numel = 0;
  std::vector<Position> registered;  // reals that follow each other there do so here
};

class Payload {
 public:
  // Allocates cleared memory of the group. `registered`: words besides those of `Word`. On a device, `reading` is the
  // stream on which receive() reads. `measured`: adds room for sums of squares, if the group computes them
  // (slot_sums()).
  Payload(ProcessGroup& group, const BucketLayout& layout, std::span<const WordKind> registered = {},
          std::shared_ptr<DeviceStream> reading = nullptr, bool measured = false);

  // Without flags and words if the host reduces them.
  const Tensor& whole() const noexcept { return whole_; }
  // The slots alone, 1-d.
  const Tensor& gradients() const noexcept { return gradients_; }
  // Flags and words alone, 1-d.
  const Tensor& tail() const noexcept { return tail_; }
  // Whether flags and words are not part of whole(), but a separate CPU tensor of a bucket on a device.
  bool has_tail_on_host() const noexcept { return on_device() && tail_.device() == Device(); }

  // --- Before the all-reduce. On a device flags and words are kept in host memory until send().
  void set_flag(size_t index, bool on);
  void set_flags(std::span<const uint8_t> on);  // all of them
  void set(Word truth, bool on);
  void set_number(Word number, uint64_t value);
  // Registered words; `index`: the position among those given to the constructor. set_real() returns what is sent: a
  // half type rounds it.
  void set_word(size_t index, uint64_t value);
  double set_real(size_t index, double value);

  // What the all-reduce itself measures, passed to it in its options; null if it does not measure.
  const std::shared_ptr<SlotSums>& slot_sums() const noexcept { return slot_sums_; }

  bool on_device() const noexcept { return whole_.device() != Device(); }
  // On a device: queues the copy of flags and words behind the work of the gradients, without waiting.
  void send();
  // `count` reals from `index` on, 1-d, where a kernel can set them after send().
  Tensor reals(size_t index, int64_t count) const;
  // Call once `reduced` is known to be launched: waits for flags and words. On a device it reads them on a separate
  // stream, without waiting for the current one; if the host reduces them, it waits for `reduced` alone.
  void receive(Work& reduced);

  // --- After the all-reduce (Avg over `ranks`) and receive(). Results are the same on all ranks.
  int flag_count(size_t index) const;
  void read_flags(std::span<int> counts) const;  // all of them
  // Number of ranks with that truth.
  int count(Word truth) const;
  // Whether all ranks have set the number to the same value, modulo 2^kNumberBits.
  bool all_equal(Word number) const;
  // A registered word. All members but all_have_gradients.
  WordReading read_word(size_t index) const;

 private:
  void set_bits(int64_t first, int64_t count, uint64_t bits);
  int count_at(int64_t bit) const;
  bool all_equal_at(int64_t first_bit) const;
  // A whole number below 2^bits.
  void set_whole(int64_t first, int bits, uint64_t value);
  double mean_of_whole(int64_t first, int bits) const;
  template <class F>
  bool for_counts(int64_t first, int64_t count, F&& f) const;
  // write_share() writes this rank's element of the shares at `first`; sum_of_shares() sums them over the ranks.
  void write_share(int64_t first, double value);
  uint64_t sum_of_shares(int64_t first) const;

  Tensor whole_;
  Tensor gradients_;
  Tensor tail_;
  std::shared_ptr<SlotSums> slot_sums_;
  int rank_, ranks_;
  TailLayout layout_;
  std::vector<uint64_t> own_bits_;  // of truths and numbers, by element, in their encoding
  Tensor host_tail_;                // tail_ itself if that is on the CPU
  std::shared_ptr<DeviceStream> reading_;
  std::unique_ptr<DeviceEvent> arrived_;  // what receive() reads is in host memory
};

}  // namespace brigade::dist
