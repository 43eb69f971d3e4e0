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

}  // namespace brigade::dist
