// What an optimizer keeps on a device: step counts, learning rates, master weights; and whether a step can be captured.
#pragma once

#include <brigade/core/tensor.h>

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace brigade::optim::detail {

// --- Checks whether a step can be captured into a CUDA graph: each replay must do what the captured step did.

// Whether work queued on the tensor's device is being captured into a graph.
bool is_captured(const Tensor& parameter);

// Throws ValueError, with PyTorch's message, for an optimizer whose step count stays on the host.
[[noreturn]] void throw_counts_on_host(const std::string& optimizer, bool could_be_capturable, SourceLocation where);
// Throws ValueError: each replay would create again the state that a parameter's first step creates.
[[noreturn]] void throw_first_in_capture(const std::string& optimizer, const Tensor& parameter, SourceLocation where);

// --- The step count, on the device (kernels/optimizer.h), of parameters that have always moved together.

struct AdamClock {
  Tensor numbers;
  size_t members = 0;  // parameters that use it

  int64_t steps() const { return static_cast<int64_t>(numbers.to_vector<double>().front()); }
};

// --- The learning rate of a group in the memory of devices, where captured steps read it.

class DeviceLr {
 public:
  // float64, one element, on the parameter's device, with this value. Throws ValueError in a capture that would have to
  // write it: each replay would write it again.
  Tensor beside(const Tensor& parameter, double lr, SourceLocation where);
  // Sets the value on all devices that have it.
  void set(double lr);

 private:
  struct Copy {
    Tensor number;
    double value;
  };
  std::vector<Copy> copies_;
};

// --- Master weights: float32 copies of half parameters (Micikevicius et al., Mixed Precision Training, ICLR 2018,
// section 3.1). A step moves the copy, and the parameter is what the copy rounds to; so steps that are too small for
// the spacing of a half type add up instead of being lost.

class MasterWeights {
 public:
  // The copies, created if missing. If a parameter was written to since its last step (a loaded model, copy_), the copy
  // takes over its values, but only those elements that are not what the copy rounds to.
  std::vector<Tensor> of(std::span<const Tensor> parameters);
  // Rounds the moved copies into the parameters. Call settle() afterwards.
  void round_into(std::span<const Tensor> parameters) const;
  // Notes the parameter's version as that of its own step.
  void settle(const Tensor& parameter);

  // The copy of a parameter; undefined if there is none.
  Tensor find(const Tensor& parameter) const;
  void put(const Tensor& parameter, Tensor copy);

 private:
  struct Copy {
    Tensor values;         // float32, contiguous
    int64_t version = -1;  // of the parameter, when it was last what `values` round to; -1: not known
  };
  std::unordered_map<const TensorImpl*, Copy> copies_;  // the optimizer keeps the parameters alive
};

}  // namespace brigade::optim::detail
