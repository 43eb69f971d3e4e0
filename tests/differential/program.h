// A program: straight lines over named tensors, as a line of JSON that both sides read (README.md has the format).
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace brigade::differential {

struct Line {
  std::string op;
  std::vector<std::string> in;  // names; "" where the operation is given no tensor
  nlohmann::json args = nlohmann::json::object();
  std::vector<std::string> out;  // names; fewer than the results is allowed
};

struct Program {
  std::string id;
  std::vector<Line> lines;
};

// Throws ValueError for an object that is no program.
Program parse_program(const nlohmann::json& object);

// One line of text for each line: "c = add(a, b, {"alpha":2})".
std::string to_text(const Program& program);

}  // namespace brigade::differential
