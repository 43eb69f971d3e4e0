// Statistics: numbers that each rank sends with the gradients of a bucket (reducer/payload.h), so that a diagnosis
// learns whether the ranks differ without a collective of its own. A statistic belongs to advice (advice.h), which
// decides from it whether a closer look is worth an exchange.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/core/place.h>

#include <cstdint>
#include <span>
#include <vector>

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

// What all ranks have sent with a bucket; the same on every rank.
struct StatisticReading {
  int ranks = 1;
  bool all_equal = true;           // of a Number
  double mean = 0, variance = 0;   // of a Measure, over the ranks
  bool all_have_gradients = true;  // in this bucket. Groups that reduce on the device don't know; then true
};

class Statistic {
 public:
  enum class Kind : uint8_t {
    Number,   // modulo 2^kNumberBits; ranks learn whether all sent the same
    Measure,  // from 0 to 2^20 - 1 (larger values are clamped); ranks learn mean and variance
  };
  virtual ~Statistic() = default;

  virtual Kind kind() const = 0;
  // Called when a backward begins that this rank reduces, before any bucket is sent.
  virtual void begin(const StartedBackward& backward) = 0;
  // The value of this rank, called when a bucket is sent.
  virtual uint64_t value() = 0;
  // Called for each bucket, in order, if every rank took part in the backward with gradients and none has failed.
  virtual void read(const StatisticReading& reading) = 0;
};

inline std::vector<Statistic::Kind> kinds_of(std::span<Statistic* const> statistics) {
  std::vector<Statistic::Kind> kinds;
  for (const Statistic* const each : statistics)
    kinds.push_back(each->kind());
  return kinds;
}

}  // namespace brigade::dist
