// The recipe `digits`: a small convolutional network (no batch norm, no dropout) on the UCI digits under DDP.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/nn/nn.h>

#include <string>
#include <vector>

namespace brigade::lab {

struct DigitsNetImpl : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};

  DigitsNetImpl();
  // [N, 1, 8, 8] -> logits [N, 10]
  Tensor forward(const Tensor& images);
};
BRIGADE_MODULE(DigitsNet);

struct DigitsOptions {
  std::string strategy = "ddp";
  std::string precision = "32-true";  // "32-true" or "64-true"
  std::string device = "cpu";         // as choose_device takes it
  int epochs = 20;
  int64_t global_batch = 64;  // over all ranks
  double lr = 0.05;
  uint64_t seed = 1;
  bool progress = true;
  int trace_steps = 0;  // how many of the last steps DigitsResult::trace is to show
};

struct DigitsResult {
  std::vector<double> loss;       // per step, mean over ranks
  std::string device;             // of rank 0: "cpu", "cuda:0"
  double accuracy = 0;            // on held-out examples
  bool parameters_equal = false;  // all ranks hold the same bits
  double seconds = 0;             // training alone
  std::vector<double> step_ms;
  std::string trace;  // dist::trace_json of the last trace_steps steps; empty for 0
};

// On one rank; the result is the same on every rank. The dtype of `precision`; throws ValueError for an unknown name or
// a batch that is larger than the data or that the ranks cannot share evenly, DeviceError for a device that is not
// there.
DigitsResult train_digits(const dist::ProcessGroupPtr& group, const DigitsOptions& options);

}  // namespace brigade::lab
