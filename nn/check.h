// Compares a module's loss and gradients with those in a file, which another program computed from the same parameters
// and inputs.
//
//   Net net;
//   const check::Report report = check::run("step.safetensors", *net, [&](const std::vector<Tensor>& inputs) {
//     return cross_entropy(net(inputs[0]), inputs[1]);
//   });
//   std::cout << report.table();
//   return report.passed() ? 0 : 1;
//
// docs/check.md has the layout of the file, and how PyTorch writes one.
#pragma once

#include <brigade/core/compare.h>
#include <brigade/core/safetensors.h>
#include <brigade/nn/module.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace brigade::check {

struct Step {
  Tensor loss;  // one element
  std::vector<Tensor> outputs;

  Step(Tensor loss_) : loss(std::move(loss_)) {}                                                              // NOLINT
  Step(Tensor loss_, std::vector<Tensor> outputs_) : loss(std::move(loss_)), outputs(std::move(outputs_)) {}  // NOLINT
};
// Computes a step from the tensors "input.0", "input.1", ... of the file.
using StepFunction = std::function<Step(const std::vector<Tensor>& inputs)>;

// A loss, and the part of the module whose gradients come from it.
struct Phase {
  nn::Module* trained;
  StepFunction step;
};

// The error, in half units in the last place, allowed for a gradient that has gone through many operations (see
// default_bound).
inline constexpr double kModuleRoundings = 256;

struct RunOptions {
  double bound = 0;            // relative to the scale of each tensor; 0: default_bound with kModuleRoundings
  std::optional<DType> dtype;  // of parameters and floating inputs; the file's unless given
  Device device;
};

// Loads "parameter.NAME" of the file into the module (every name of its state_dict, and no other),
// moves it to dtype and device, and compares "loss", "grad.NAME" of every parameter that was
// reached, and, where the file has them, "output.N" and "grad.input.N". With several phases, run
// one after another, the losses are "loss.0", "loss.1", ... A name that only one side has fails in
// the report. Throws IoError for a file that cannot be read, ValueError when the file's parameters
// have no floating dtype or an input is left out.
Report run(const SafetensorsFile& file, nn::Module& module, const std::vector<Phase>& phases,
           const RunOptions& options = {});
Report run(const std::string& file, nn::Module& module, const StepFunction& step, const RunOptions& options = {});

}  // namespace brigade::check
