// The list of collectives that the static objects fill, and the conversion of sizes to counts.
#include <brigade/lab/bench/collectives/collective.h>

#include <brigade/core/error.h>

#include <algorithm>
#include <cstring>

namespace brigade::lab::bench {
namespace {

std::vector<Collective>& list() {
  static std::vector<Collective> all;
  return all;
}

}  // namespace

bool Buffers::in_place() const {
  const auto* in = static_cast<const char*>(input.raw_data());
  const auto* out = static_cast<const char*>(output.raw_data());
  return in >= out ? in < out + std::max<size_t>(output.nbytes(), 1) : out < in + std::max<size_t>(input.nbytes(), 1);
}

int64_t Collective::count_of(int64_t bytes, DType dtype, int ranks) const {
  if (!has_data) return 0;
  return std::max<int64_t>(bytes / static_cast<int64_t>(itemsize(dtype)) / (in_parts() ? ranks : 1), 1);
}

int64_t Collective::bytes_of(int64_t count, DType dtype, int ranks) const {
  return count * static_cast<int64_t>(itemsize(dtype)) * (in_parts() ? ranks : 1);
}

AddCollective::AddCollective(Collective collective) {
  const auto after = [](const Collective& a, const Collective& b) { return a.name < b.name; };
  list().insert(std::upper_bound(list().begin(), list().end(), collective, after), collective);
}

const std::vector<Collective>& all_collectives() { return list(); }

std::string collective_names() {
  std::string names;
  for (const Collective& each : list())
    names += (names.empty() ? "" : ", ") + each.name;
  return names;
}

const Collective& find_collective(const std::string& name) {
  for (const Collective& each : list()) {
    if (each.name == name) return each;
  }
  throw ValueError("unknown collective '{}'; known are {}", name, collective_names());
}

double algorithm_bandwidth(int64_t bytes, double us) { return us > 0 ? static_cast<double>(bytes) / us / 1e3 : 0; }

void copy_input(const Buffers& buffers) {
  if (!buffers.in_place()) std::memcpy(buffers.output.raw_data(), buffers.input.raw_data(), buffers.input.nbytes());
}

}  // namespace brigade::lab::bench
