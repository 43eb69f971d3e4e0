// Statistics: numbers that each rank sends with the gradients of a bucket (payload.h), so that an observer learns whether
// the ranks differ without a collective of its own.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/core/place.h>

#include <cstdint>

namespace brigade::dist {

// The number of backwards that this rank's gradients still hold, and the latest of them.
struct KeptBackwards {
  int64_t count = 0;
  Place at;
};

// What a rank knows when a backward that it reduces begins.
struct StartedBackward {
  uint64_t number = 0;                   // from 1, the same on every rank
  const autograd::Plan* plan = nullptr;  // null if this rank takes part without a sound backward of its own
  int64_t rows = 0;                      // samples in the batch, 0 if not known
  int64_t gathered = 1;                  // backwards summed up in the gradients: this and earlier ones
  // The earlier ones among them that were already averaged, and since then neither cleared nor used by a step.
  KeptBackwards kept = {};
};

// How a word that is sent with a bucket travels (payload.h), and what the ranks learn of it.
enum class WordKind : uint8_t {
  Truth,    // 0 or 1; ranks learn how many have set it
  Number,   // modulo 2^kNumberBits; ranks learn whether all sent the same
  Measure,  // from 0 to 2^20 - 1 (larger values are clamped); ranks learn mean and variance
  Real,     // rounded to the dtype of the bucket; ranks learn the mean
};
inline constexpr int kNumberBits = 11;

// What all ranks have sent as one word of a bucket; the same on every rank.
struct StatisticReading {
  int ranks = 1;
  int count = 0;                   // of a Truth
  bool all_equal = true;           // of a Number
  double mean = 0, variance = 0;   // of a Measure or a Real (without variance), over the ranks
  bool all_have_gradients = true;  // in this bucket. Groups that reduce on the device don't know; then true
};

class Statistic {
 public:
  using Kind = WordKind;
  virtual ~Statistic() = default;

  virtual Kind kind() const = 0;  // not Real
  // Called when a backward begins that this rank reduces, before any bucket is sent.
  virtual void begin(const StartedBackward& backward) = 0;
  // The value of this rank, called when a bucket is sent.
  virtual uint64_t value() = 0;
  // Called for each bucket, in order, if every rank took part in the backward with gradients and none has failed.
  virtual void read(const StatisticReading& reading) = 0;
};

}  // namespace brigade::dist
