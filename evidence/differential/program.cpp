// Parses programs from JSON and prints them as readable text.
#include "differential/run.h"

#include <brigade/core/error.h>

namespace brigade::differential {
namespace {

std::vector<std::string> names(const nlohmann::json& line, const char* key) {
  std::vector<std::string> result;
  for (const nlohmann::json& name : line.value(key, nlohmann::json::array()))
    result.push_back(name.is_null() ? "" : name.get<std::string>());
  return result;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : ", ") + (name.empty() ? "none" : name);
  return text;
}

}  // namespace

Program parse_program(const nlohmann::json& object) {
  try {
    Program program{object.at("id").get<std::string>(), {}};
    for (const nlohmann::json& line : object.at("lines")) {
      program.lines.push_back({line.at("op").get<std::string>(), names(line, "in"),
                               line.value("args", nlohmann::json::object()), names(line, "out")});
    }
    return program;
  } catch (const nlohmann::json::exception& error) {
    throw ValueError("expected a program {\"id\", \"lines\": [{\"op\", \"in\", \"args\", \"out\"}]}: " +
                     std::string(error.what()));
  }
}

std::string to_text(const Program& program) {
  std::string text;
  for (const Line& line : program.lines) {
    text += "  ";
    if (!line.out.empty()) text += joined(line.out) + " = ";
    text += line.op + "(" + joined(line.in);
    if (!line.args.empty()) text += (line.in.empty() ? "" : ", ") + line.args.dump();
    text += ")\n";
  }
  return text;
}

}  // namespace brigade::differential
