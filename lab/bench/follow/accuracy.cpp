// Compares long float32 sums with float64 sums, on the same numbers that PyTorch gets.
#include <brigade/autograd/functional.h>
#include <brigade/core/error.h>
#include <brigade/core/factory.h>
#include <brigade/lab/bench/follow/follow.h>
#include <brigade/lab/options.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <vector>

namespace brigade::lab::bench {
namespace {

// Numbers in [0, 1), exact in float32, that any program can reproduce, as bench/torch/accuracy.py does.
Tensor numbers(int64_t count, uint64_t first) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    // The 32-bit mixing step of xxHash.
    auto word = static_cast<uint32_t>(static_cast<uint64_t>(i) + first);
    word *= 2654435761U;
    word = (word ^ (word >> 15)) * 2246822519U;
    word = (word ^ (word >> 13)) * 3266489917U;
    values[static_cast<size_t>(i)] = static_cast<float>((word ^ (word >> 16)) >> 8) * 0x1p-24F;
  }
  return tensor(values, {count});
}

using Operation = std::function<Tensor(const Tensor& x, const Tensor& y)>;

// Operations on two vectors whose length is a multiple of 4.
const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> all = {
      {"sum", [](const Tensor& x, const Tensor&) { return sum(x); }},
      {"mean", [](const Tensor& x, const Tensor&) { return mean(x); }},
      {"var", [](const Tensor& x, const Tensor&) { return var(x, {}); }},
      {"norm", [](const Tensor& x, const Tensor&) { return norm(x); }},
      {"sum_columns",
       [](const Tensor& x, const Tensor&) {
         return sum(x.reshape({-1, 4}), {0});
       }},
      {"dot", [](const Tensor& x, const Tensor& y) { return dot(x, y); }},
      {"matmul", [](const Tensor& x, const Tensor& y) { return matmul(x, y); }},
      {"einsum",
       [](const Tensor& x, const Tensor& y) {
         return einsum("i,i->", {x, y});
       }},
      {"mv",
       [](const Tensor& x, const Tensor& y) {
         return mv(x.reshape({4, -1}), y.slice(0, 0, y.size(0) / 4));
       }},
      {"mv_transposed",
       [](const Tensor& x, const Tensor& y) {
         return mv(x.reshape({-1, 4}).t(), y.slice(0, 0, y.size(0) / 4));
       }},
      {"mm",
       [](const Tensor& x, const Tensor& y) {
         return mm(x.reshape({4, -1}), y.reshape({-1, 4}));
       }},
  };
  return all;
}

// The largest relative error of an element of the result.
double error_of(const std::vector<std::string>& words) {
  if (words.size() != 2) throw ValueError("accuracy: expected OPERATION LENGTH, got {} words", words.size());
  const auto found = operations().find(words[0]);
  if (found == operations().end()) {
    std::string names;
    for (const auto& [name, operation] : operations())
      names += (names.empty() ? "" : ", ") + name;
    throw ValueError("accuracy: there is no operation '{}'; known are {}", words[0], names);
  }
  const int64_t length = count_of(words[1], "LENGTH", int64_t{1} << 28) / 4 * 4;
  if (length == 0) throw ValueError("LENGTH: expected at least 4, got '{}'", words[1]);
  const NoGradGuard no_grad;
  const Tensor x = numbers(length, 0), y = numbers(length, static_cast<uint64_t>(length));
  const auto in_float32 = found->second(x, y).to(kFloat64).to_vector<double>();
  const auto exact = found->second(x.to(kFloat64), y.to(kFloat64)).to_vector<double>();
  double worst = 0;
  for (size_t i = 0; i < exact.size(); ++i)
    worst = std::max(worst, std::abs(in_float32[i] / exact[i] - 1));
  return worst;
}

}  // namespace

void follow_accuracy() {
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    std::cout << nlohmann::json{{"case", line}, {"error", error_of(words)}}.dump() << std::endl;
  }
}

}  // namespace brigade::lab::bench
