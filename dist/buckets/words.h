// Words: what each rank sends with the gradients of a bucket (payload.h) for its observers, so that they learn whether
// the ranks differ without a collective of their own.
#pragma once

#include <cstdint>

namespace brigade::dist {

// How a word that is sent with a bucket travels (payload.h), and what the ranks learn of it.
enum class WordKind : uint8_t {
  Truth,    // 0 or 1; ranks learn how many have set it
  Number,   // modulo 2^kNumberBits; ranks learn whether all sent the same
  Measure,  // from 0 to 2^20 - 1 (larger values are clamped); ranks learn mean and variance
  Real,     // rounded to the dtype of the bucket; ranks learn the mean
};
inline constexpr int kNumberBits = 11;

// What all ranks have sent as one word of a bucket; the same on every rank.
struct WordReading {
  int ranks = 1;
  int count = 0;                   // of a Truth
  bool all_equal = true;           // of a Number
  double mean = 0, variance = 0;   // of a Measure or a Real (without variance), over the ranks
  bool all_have_gradients = true;  // in this bucket. Groups that reduce on the device don't know; then true
};

class SentWord {
 public:
  virtual ~SentWord() = default;

  virtual WordKind kind() const = 0;  // not Real
  // The value of this rank, called when a bucket is sent.
  virtual uint64_t value() = 0;
  // Called for each bucket, in order, if every rank took part in the backward with gradients and none has failed.
  virtual void read(const WordReading& reading) = 0;
};

}  // namespace brigade::dist
