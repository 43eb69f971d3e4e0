// Compares tensors with expected values, from a safetensors file that another program wrote or from memory.
//
//   check::Report report = check::compare("step.safetensors", {{"loss", loss}, {"grad.fc1.weight",
//   net->fc1->weight.grad()}}); std::cout << report.table(); return report.passed() ? 0 : 1;
//
// docs/check.md has the layout of such a file, and how PyTorch writes one.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace brigade::check {

// How far an element may be from its expected value, relative to the scale of its tensor: the
// largest finite expected magnitude in it. `roundings` half units in the last place of the dtype
// times the square root of `terms`, the number of values that one result is summed from: rounding
// errors add up like steps in random directions.
inline constexpr double kRoundings = 16;
double default_bound(DType dtype, int64_t terms = 1, double roundings = kRoundings) noexcept;

struct Options {
  double bound = 0;  // relative to the scale; 0: default_bound of the dtype and the tensor's number of elements
  double roundings = kRoundings;  // for default_bound
  // The least scale: if the expected values of a tensor cancel out, the magnitude of the numbers that they came from.
  double least_scale = 0;
};

// The comparison of one tensor.
struct Comparison {
  std::string name;
  bool passed = false;
  double max_abs = 0;                // largest |actual - expected|
  double max_rel = 0;                // largest |actual - expected| / max(|actual|, |expected|)
  double cosine = 1;                 // of the angle between both as vectors; 1 if both are zeros
  std::vector<int64_t> worst_index;  // of max_abs; empty without dimensions or elements
  double actual = 0, expected = 0;   // at worst_index
  double bound = 0;                  // for max_abs
  std::string problem;               // "missing", another shape or dtype: nothing was compared then
};

// NaN equals NaN, and an infinity equals the same infinity; integers and bool must be equal. The
// tensors may be on any device. Both must have the same shape, and the same dtype unless
// `any_dtype`.
Comparison compare(const std::string& name, const Tensor& actual, const Tensor& expected, const Options& options = {},
                   bool any_dtype = false);

struct Report {
  std::vector<Comparison> rows;

  bool passed() const noexcept;
  // A line per tensor under a heading, numbers aligned.
  std::string table() const;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// The expectations of a file are all of its tensors except those whose names begin with input.
// parameter. or grad_output.
bool is_expectation(const std::string& name) noexcept;
// Compares each tensor with the file's of the same name. A tensor that the file expects and
// `actual` lacks fails as "missing", one that the file does not know as "additional". Tensors of
// another floating dtype than the file's are compared within the bound of the coarser one. Throws
// IoError for a file that cannot be read, ValueError when a name appears twice.
Report compare(const std::string& file, const NamedTensors& actual, const Options& options = {});
Report compare(const NamedTensors& expected, const NamedTensors& actual, const Options& options = {});

}  // namespace brigade::check
