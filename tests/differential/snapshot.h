// The observable state of a tensor: dtype, shape, element bytes, requires_grad.
#pragma once

#include <brigade/core/tensor.h>

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace brigade::differential {

struct Snapshot {
  DType dtype = DType::Float32;
  Shape sizes;
  std::string bytes;  // row-major, little-endian
  bool requires_grad = false;

  // Copies the elements at the time of the call.
  static Snapshot of(const Tensor& tensor);
  // {"dtype", "shape", "data": base64, "requires_grad"}; throws ValueError when the bytes do not fit the shape.
  static Snapshot from_json(const nlohmann::json& object);
  nlohmann::json to_json() const;

  std::vector<double> values() const;
  // "float32 [2, 2] [1, 2, 3, 4]"; long tensors are abbreviated.
  std::string to_text() const;

  bool operator==(const Snapshot& other) const = default;
};

}  // namespace brigade::differential
