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

std::vector<Statistic::Kind> statistics_of_all_advice() {
  std::vector<Statistic::Kind> kinds;
  for (const NamedAdvice& each : make_all_advice())
    if (const Statistic* const statistic = each.advice->statistic()) kinds.push_back(statistic->kind());
  return kinds;
}

}  // namespace brigade::dist
