// NormMeter: the norms of this rank's gradients, whether they are finite, and a linear probe of them, sent as words of
// each bucket. Ranks learn from them whether one of them stands apart, all are alike, or a hook changes the mean.
//
// On the CPU a gradient is measured when it is ready, or by the all-reduce itself (groups/slot_sums.h). On a device a
// kernel measures the whole bucket and writes the words. Where the host reduces the words (NCCL), it does not wait for
// the device: the words describe the previous backward, or, with a communication hook, are sent after the gradients.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/diagnosis/numbers.h>
#include <brigade/dist/reducer/meter.h>

#include <memory>
#include <optional>
#include <vector>

namespace brigade::dist {

class NormMeter final : public GradientMeter {
 public:
  // This rank's numbers in the backward that the words of the current one describe.
  const Numbers& numbers() const noexcept { return earlier_ ? *earlier_ : own_; }
  // This rank's numbers in this backward; those of a device may not have arrived.
  const Numbers& own_numbers() const noexcept { return own_; }
  const Measured& measured() const noexcept { return measured_; }
  // What all ranks have sent with a bucket.
  struct Reading {
    double probe = 0;  // kernels::probe(), the mean
    double norm = 0;   // the geometric mean
    bool finite = true;
    bool scaled = false;  // a gradient comes from a scaled loss; known only with a communication hook
  };
  static Reading reading_of(const Payload& payload);

  std::vector<WordKind> words() const override;
  void on_build(const Buckets& buckets) override;
  void on_rebuild(const Buckets& buckets) override;
  void begin(const Round& round, const autograd::Plan* plan) override;
  void measure(const Round& round, uint32_t parameter) override;
  void write(const Round& round, uint32_t bucket, Payload& payload) override;
  void on_send(const Round& round, uint32_t bucket, Payload& payload) override;
  void write_late(const Round& round, uint32_t bucket, Payload& payload) override;
  bool read(const Round& round, uint32_t bucket, const Payload& payload) override;
  bool is_late() const noexcept override { return is_late_; }
  void settle(const Round& round) override;
  bool looks_for_non_finite() const override;
  void on_non_finite(const char* op, SourceLocation where, DType dtype) override;

 private:
  // Sums of squares per slot of a bucket on a device, and its probe: [slots + 1] float64, there and on the host.
  struct DeviceSums {
    Tensor sums;
    Tensor on_host;
    std::unique_ptr<DeviceEvent> arrived;
  };
  struct Progress {
    double sum_of_squares = 0;      // of this rank's gradients, on the CPU where the all-reduce does not measure them
    double variance = 0;            // where it does: of the norms over the ranks,
    bool same_sums = true;          // and whether the sum is the same on all ranks
    std::vector<int64_t> measured;  // on a device: elements per slot, to be measured when the bucket is sent
  };
  void write_numbers(const Round& round, uint32_t bucket, Payload& payload);
  void take_sums(const Round& round, uint32_t bucket);
  // Reads what the all-reduce has measured; false if one of the ranks has no gradients in the bucket.
  bool read_slot_sums(const Round& round, uint32_t bucket, const Payload& payload);
  // Reads the numbers that are still on a device; waits until it has computed them.
  void receive(Numbers& numbers, const Buckets& buckets) const;

  std::vector<DeviceSums> on_device_;  // per bucket
  // Of this backward.
  Numbers own_;
  std::optional<Numbers> earlier_;  // of the previous one, if the words describe that
  std::vector<Progress> progress_;  // per bucket
  Measured measured_;
  bool is_late_ = false;
  // Of the backwards before it.
  bool was_alike_ = false;   // all ranks' gradients seemed the same: look closer
  bool is_pending_ = false;  // own_ is still to be sent
  int non_finite_in_a_row_ = 0;
};

// The words that travel with each bucket of a wrapper with diagnosis: of the meter, then of all registered advice.
std::vector<WordKind> words_of_diagnosis();

}  // namespace brigade::dist
