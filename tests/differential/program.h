// A program: straight-line code over named tensors, stored as a line of JSON that both sides read (format: README.md).
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace brigade::differential {

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

}  // namespace brigade::differential
