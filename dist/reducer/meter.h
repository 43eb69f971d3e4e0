// GradientMeter: measures this rank's gradients on their way into the buckets, and sends what it has found with them. A
// reducer has at most one; without it, gradients are averaged and nothing else is known of them.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/buckets/words.h>

#include <cstdint>
#include <vector>

namespace brigade::dist {

class Buckets;
class Payload;
class Round;

class GradientMeter {
 public:
  virtual ~GradientMeter() = default;

  // The words that it sends with each bucket, the same on every rank. They are the first registered words of a payload.
  virtual std::vector<WordKind> words() const = 0;
  // The buckets were cut; they are about to be cut again.
  virtual void on_build(const Buckets& buckets) = 0;
  virtual void on_rebuild(const Buckets& buckets) = 0;

  // --- In a reduced backward, in this order

  // No gradient was touched yet. `plan`: null if this rank takes part without a sound backward of its own.
  virtual void begin(const Round& round, const autograd::Plan* plan) = 0;
  // The gradient of the parameter is in its slot, or on a device about to be copied there.
  virtual void measure(const Round& round, uint32_t parameter) = 0;
  // All gradients of the bucket are in their slots: sets the words. After it, on_send() runs when flags and words are
  // in the payload, on a device in the order of its stream.
  virtual void write(const Round& round, uint32_t bucket, Payload& payload) = 0;
  virtual void on_send(const Round& round, uint32_t bucket, Payload& payload) = 0;
  // Only if a communication hook reduces gradients on a device, and the host their flags and words: sets words whose
  // numbers the device has computed by now.
  virtual void write_late(const Round& round, uint32_t bucket, Payload& payload) = 0;
  // The bucket is reduced. Whether the words speak of the gradients of every rank; the same on every rank.
  virtual bool read(const Round& round, uint32_t bucket, const Payload& payload) = 0;
  // Whether the words describe the previous backward, since the host does not wait for the numbers of this one.
  virtual bool is_late() const noexcept = 0;
  // The gradients are in place.
  virtual void settle(const Round& round) = 0;

  // For autograd::Listener; see there.
  virtual bool looks_for_non_finite() const = 0;
  virtual void on_non_finite(const char* op, SourceLocation where, DType dtype) = 0;
};

}  // namespace brigade::dist
