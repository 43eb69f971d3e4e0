// The list of faults in the order of their ids, filled by static objects.
#include <brigade/lab/faults/fault.h>

#include <algorithm>

namespace brigade::lab {

namespace {
std::vector<Fault>& registry() {
  static std::vector<Fault> faults;
  return faults;
}
}  // namespace

AddFault::AddFault(Fault fault, SourceLocation where) {
  const std::string place = to_string(where);
  fault.file = place.substr(0, place.rfind(':'));
  auto& faults = registry();
  const auto before = [](const Fault& a, const Fault& b) { return a.id < b.id; };
  faults.insert(std::upper_bound(faults.begin(), faults.end(), fault, before), std::move(fault));
}

const std::vector<Fault>& all_faults() { return registry(); }

const Fault& find_fault(const std::string& id) {
  for (const Fault& fault : registry()) {
    if (fault.id == id) return fault;
  }
  std::string known;
  for (const Fault& fault : registry())
    known += (known.empty() ? "" : ", ") + fault.id;
  throw ValueError("unknown fault '" + id + "'; known are " + known);
}

}  // namespace brigade::lab
