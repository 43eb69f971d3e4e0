// The list of faults in the order of their ids, filled by static objects.
#include <brigade/lab/faults/fault.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <numeric>
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

// Letters to put in, take out or replace (Levenshtein).
size_t edits_between(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

}  // namespace

AddFault::AddFault(Fault fault, SourceLocation where) {
  fault.file = Place(where).file;
  fault.name = std::filesystem::path(fault.file).stem().string();
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
  std::vector<std::pair<size_t, std::string>> near;
  for (const Fault& fault : registry()) {
    near.emplace_back(edits_between(id, fault.id), fault.id);
    near.emplace_back(edits_between(id_or_name, fault.name), fault.name);
  }
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  constexpr size_t kShown = 3;
  std::string nearest;
  for (size_t i = 0; i < std::min(kShown, near.size()); ++i)
    nearest += (i > 0 ? ", " : "") + near[i].second;
  throw ValueError("unknown fault '{}'; the nearest are {} (brigade diagnose --list names all of them)", id_or_name,
                   nearest);
}

}  // namespace brigade::lab
