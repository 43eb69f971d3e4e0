// The list of advice.
#include <brigade/dist/diagnosis/advice.h>

#include <utility>

namespace brigade::dist {
namespace {
std::map<std::string, AdviceMaker>& known_advice() {
  static std::map<std::string, AdviceMaker> makers;
  return makers;
}
}  // namespace

AddAdvice::AddAdvice(const std::string& name, AdviceMaker make) {
  if (!make) throw ValueError("AddAdvice: '{}' comes without a function that makes it; pass one", name);
  if (!known_advice().emplace(name, std::move(make)).second)
    throw ValueError("AddAdvice: there is advice '{}' already; choose another name", name);
}

const std::map<std::string, AdviceMaker>& all_advice() { return known_advice(); }

std::vector<NamedAdvice> make_all_advice() {
  std::vector<NamedAdvice> made;
  for (const auto& [name, make] : all_advice()) {
    made.push_back({name, make()});
    if (!made.back().advice)
      throw ValueError("AddAdvice: the function that makes '{}' returned nothing; return an object", name);
  }
  return made;
}

std::vector<Statistic*> statistics_of(std::span<const NamedAdvice> advice) {
  std::vector<Statistic*> found;
  for (const NamedAdvice& each : advice)
    if (Statistic* const statistic = each.advice->statistic()) found.push_back(statistic);
  return found;
}

}  // namespace brigade::dist
