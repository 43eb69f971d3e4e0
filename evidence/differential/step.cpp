// The registry of steps, filled by the family files.
#include "differential/step.h"

namespace brigade::differential {
namespace {

std::map<std::string, Step>& registry() {
  static std::map<std::string, Step> steps;
  return steps;
}

}  // namespace

AddSteps::AddSteps(std::initializer_list<std::pair<const char*, Step>> steps) {
  for (const auto& [name, step] : steps)
    registry().emplace(name, step);
}

Step find_step(const std::string& name) {
  const auto found = registry().find(name);
  return found == registry().end() ? nullptr : found->second;
}

}  // namespace brigade::differential
