// Programs, the states of their tensors, and how a program is run.
#pragma once

#include <brigade/core/tensor.h>

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace brigade::differential {

// --- A program: straight-line code over named tensors, stored as a line of JSON that both sides read (format:
// README.md).

struct Line {
  std::string op;
  std::vector<std::string> in;  // names; "" for an omitted tensor
  nlohmann::json args = nlohmann::json::object();
  std::vector<std::string> out;  // names; may be fewer than the results
};

struct Program {
  std::string id;
  std::vector<Line> lines;
};

// Throws ValueError if the object is not a program.
Program parse_program(const nlohmann::json& object);

// One line of text per program line: "c = add(a, b, {"alpha":2})".
std::string to_text(const Program& program);

// --- The observable state of a tensor: dtype, shape, element bytes, requires_grad.

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

// --- Runs a program line by line. A refused line leaves its results unset, and lines that need them are skipped; a
// refused backward ends the program, since it is unspecified which gradients it had accumulated by then.

struct Refusal {
  size_t line = 0;
  std::string kind;  // "ShapeError", ...
  std::string message;
};

struct Result {
  std::vector<Refusal> refusals;
  std::map<std::string, Snapshot> variables, gradients;  // at the end; undefined tensors are omitted
  // After each line: its results, or the tensor it modified. Filled only with `with_trace`.
  std::vector<std::map<std::string, Snapshot>> trace;
  // Describes a malformed line, which is an error of the program's author; "" if there is none.
  std::string malformed;

  nlohmann::json to_json() const;
};

Result run(const Program& program, bool with_trace = false);

}  // namespace brigade::differential
