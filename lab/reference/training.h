// Compares whole models with PyTorch: 20 steps with SGD and with AdamW, or 5 with SGD under autocast, from the same
// parameters and data. Compares the loss of each step, and gradients, parameters and buffers after some of the
// steps (tests/reference/generate_models.py).
#pragma once

#include <brigade/core/device.h>
#include <brigade/core/safetensors.h>
#include <brigade/lab/reference/check_case.h>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace brigade::lab::reference {

// Relative to the scale of each tensor, after 20 steps, over which rounding errors grow.

inline constexpr double kTrainingBoundFloat64 = 1e-10;
inline constexpr double kTrainingBoundFloat32 = 1e-4;
// Under autocast, after 5 steps: a few roundings of the lower dtype.
inline constexpr double kTrainingBoundBFloat16 = 3e-2;
inline constexpr double kTrainingBoundFloat16 = 5e-3;

struct TrainingCase {
  std::string model, optimizer;  // "gpt", "sgd" or "adamw"
  DType dtype = DType::Float64;
  std::shared_ptr<const nlohmann::json> row;
  bool autocast = false;  // float32 on the CPU, whose lists the fixture follows; forward under autocast with `dtype`

  // "gpt/sgd/float64", "gpt/sgd/autocast bfloat16"
  std::string id() const {
    return model + "/" + optimizer + "/" + (autocast ? "autocast " : "") + brigade::name(dtype);
  }
  // The path of the fixture, in the folder of the cases.
  std::string fixture() const {
    return std::string("fixtures/models/") + (autocast ? "autocast/" : "") + model + ".safetensors";
  }
};

// From models.json and autocast_models.json in the folder of the cases. Throws IoError, ValueError.
std::vector<TrainingCase> read_training_table(const std::string& folder);
CaseResult check_training(const TrainingCase& which, const SafetensorsFile& fixture, Device device = {});

}  // namespace brigade::lab::reference
