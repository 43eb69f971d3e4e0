// Datasets that tests of the loader share.
#pragma once

#include <brigade/core/factory.h>
#include <brigade/data/data_loader.h>
#include <brigade/kernels/factory.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace brigade::test {

// Example i: i, and a random number that get() draws.
struct Augmented : data::Dataset<> {
  int64_t count;
  explicit Augmented(int64_t n) : count(n) {}
  int64_t size() const override { return count; }
  data::Example get(int64_t index) const override {
    return {scalar_tensor(static_cast<double>(index)), rand({}, kFloat64)};
  }
};

// Throws at some indices.
struct Broken : Augmented {
  std::vector<int64_t> bad;
  Broken(int64_t n, std::vector<int64_t> indices) : Augmented(n), bad(std::move(indices)) {}
  data::Example get(int64_t index) const override {
    for (const int64_t each : bad)
      if (index == each) throw std::out_of_range("no picture " + std::to_string(index));
    return Augmented::get(index);
  }
};

// What batches hold.
struct Seen {
  std::vector<std::vector<int64_t>> indices;
  std::vector<std::vector<double>> numbers;
  friend bool operator==(const Seen&, const Seen&) = default;
  void add(const data::Example& batch) {
    indices.push_back(batch.data.to_vector<int64_t>());
    numbers.push_back(batch.target.to_vector<double>());
  }
};

inline Seen pass_of(data::DataLoader<>& loader) {
  Seen seen;
  for (const data::Example& batch : loader)
    seen.add(batch);
  return seen;
}

}  // namespace brigade::test
