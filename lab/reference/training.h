// Whole models beside PyTorch: 20 steps with SGD and with AdamW, from the same parameters and data.
// Compared are the loss of each step, and gradients, parameters and buffers after some of them
// (tests/reference/generate_models.py).
#pragma once

#include <brigade/core/device.h>
#include <brigade/core/safetensors.h>
#include <brigade/lab/reference/check_case.h>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace brigade::lab::reference {

// Of the scale of each tensor: after 20 steps, in which rounding errors grow.

inline constexpr double kTrainingBoundFloat64 = 1e-10;
inline constexpr double kTrainingBoundFloat32 = 1e-4;

struct TrainingCase {
  std::string model, optimizer;  // "gpt", "sgd" or "adamw"
  DType dtype = DType::Float64;
  std::shared_ptr<const nlohmann::json> row;

  // "gpt/sgd/float64"
  std::string id() const { return model + "/" + optimizer + "/" + brigade::name(dtype); }
};

// From models.json in the folder of the cases. Throws IoError, ValueError.
std::vector<TrainingCase> read_training_table(const std::string& folder);
CaseResult check_training(const TrainingCase& which, const SafetensorsFile& fixture, Device device = {});

}  // namespace brigade::lab::reference
