// The list of faults in the order of their ids, filled by static objects.
#include <brigade/lab/faults/fault.h>

#include <brigade/lab/options.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace brigade::lab {
namespace {
std::vector<Fault>& registry() {
  static std::vector<Fault> faults;
  return faults;
}

std::string in_capitals(std::string text) {
  for (char& c : text)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

AddFault::AddFault(Fault fault, SourceLocation where) {
  fault.file = Place(where).file;
  auto& faults = registry();
  const auto before = [](const Fault& a, const Fault& b) { return a.id < b.id; };
  faults.insert(std::upper_bound(faults.begin(), faults.end(), fault, before), std::move(fault));
}

const std::vector<Fault>& all_faults() { return registry(); }

const Fault& find_fault(const std::string& id_or_name) { return *find_faults(id_or_name).front(); }

std::vector<const Fault*> find_faults(const std::string& id_or_name) {
  const std::string id = in_capitals(id_or_name);
  std::vector<const Fault*> found;
  for (const Fault& fault : registry()) {
    if (fault.id == id || fault.name == id_or_name) found.push_back(&fault);
  }
  if (!found.empty()) return found;
  std::vector<std::string> known;
  for (const Fault& fault : registry())
    known.insert(known.end(), {fault.id, fault.name});
  constexpr size_t kShown = 3;
  throw ValueError("unknown fault '{}'; the nearest are {} (brigade diagnose --list names all of them)", id_or_name,
                   fmt::format("{}", fmt::join(nearest_words(id_or_name, known, kShown), ", ")));
}

}  // namespace brigade::lab
