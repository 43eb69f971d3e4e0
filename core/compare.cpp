// Measures differences element by element against a bound, and prints the worst of each tensor.
#include <brigade/core/compare.h>

#include <brigade/core/safetensors.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

namespace brigade::check {
namespace {

double epsilon(DType dtype) noexcept {
  switch (dtype) {
    case DType::Float64: return std::numeric_limits<double>::epsilon();
    case DType::Float32: return std::numeric_limits<float>::epsilon();
    case DType::Float16: return 0x1p-10;
    case DType::BFloat16: return 0x1p-7;
    default: return 0;
  }
}

std::vector<int64_t> index_of(int64_t position, const Shape& sizes) {
  std::vector<int64_t> index(static_cast<size_t>(sizes.size()));
  for (int d = sizes.size() - 1; d >= 0; --d) {
    index[static_cast<size_t>(d)] = position % sizes[d];
    position /= sizes[d];
  }
  return index;
}

// The difference of two values that should be equal up to rounding; infinity if they differ and one
// of them is not finite.
double difference(double actual, double expected) noexcept {
  if (std::isnan(actual) && std::isnan(expected)) return 0;
  if (actual == expected) return 0;
  if (!std::isfinite(actual) || !std::isfinite(expected)) return std::numeric_limits<double>::infinity();
  return std::abs(actual - expected);
}

void measure(Comparison& row, const std::vector<double>& actual, const std::vector<double>& expected,
             const Shape& sizes) {
  double product = 0, actual_square = 0, expected_square = 0;
  size_t worst = 0;
  double scale = 0;
  for (const double e : expected)
    if (std::isfinite(e)) scale = std::max(scale, std::abs(e));
  const double unit = scale > 0 ? scale : 1;  // squares of extreme numbers would leave the range of double
  for (size_t i = 0; i < actual.size(); ++i) {
    const double apart = difference(actual[i], expected[i]);
    if (apart > row.max_abs || i == 0) {
      row.max_abs = apart;
      worst = i;
    }
    if (apart > 0)
      row.max_rel = std::max(row.max_rel,
                             std::isinf(apart) ? apart : apart / std::max(std::abs(actual[i]), std::abs(expected[i])));
    if (std::isfinite(actual[i]) && std::isfinite(expected[i])) {
      const double a = actual[i] / unit, e = expected[i] / unit;
      product += a * e;
      actual_square += a * a;
      expected_square += e * e;
    }
  }
  if (actual_square > 0 || expected_square > 0)
    row.cosine = actual_square > 0 && expected_square > 0 ? product / std::sqrt(actual_square * expected_square) : 0;
  if (!actual.empty()) {
    row.worst_index = index_of(static_cast<int64_t>(worst), sizes);
    row.actual = actual[worst];
    row.expected = expected[worst];
  }
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", value);
  return text;
}

std::string full_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string index_text(const std::vector<int64_t>& index) {
  std::string text = "[";
  for (size_t i = 0; i < index.size(); ++i)
    text += (i ? "," : "") + std::to_string(index[i]);
  return text + "]";
}

std::map<std::string, Tensor> by_name(const NamedTensors& tensors) {
  std::map<std::string, Tensor> map;
  for (const auto& [name, tensor] : tensors) {
    if (!map.emplace(name, tensor).second)
      throw ValueError("compare: two tensors are named '{}'; give each a name of its own", name);
  }
  return map;
}

Comparison problem(const std::string& name, const std::string& text) {
  Comparison row;
  row.name = name;
  row.problem = text;
  return row;
}

}  // namespace

double default_bound(DType dtype, int64_t terms, double roundings) noexcept {
  return roundings / 2 * epsilon(dtype) * std::sqrt(static_cast<double>(std::max<int64_t>(terms, 1)));
}

Comparison compare(const std::string& name, const Tensor& actual, const Tensor& expected, const Options& options,
                   bool any_dtype) {
  if (!actual.defined()) return problem(name, "missing: expected " + describe(expected));
  if (actual.sizes() != expected.sizes())
    return problem(name, "expected the shape " + to_string(expected.sizes()) + ", got " + to_string(actual.sizes()));
  const bool floating = is_floating_point(actual.dtype()) && is_floating_point(expected.dtype());
  if (actual.dtype() != expected.dtype() && !(any_dtype && floating))
    return problem(name, std::string("expected the dtype ") + brigade::name(expected.dtype()) + ", got " +
                             brigade::name(actual.dtype()));
  Comparison row;
  row.name = name;
  if (!floating) {
    const std::vector<int64_t> a = detail::elements_of<int64_t>(actual), e = detail::elements_of<int64_t>(expected);
    measure(row, std::vector<double>(a.begin(), a.end()), std::vector<double>(e.begin(), e.end()), actual.sizes());
    row.passed = a == e;
    return row;
  }
  const std::vector<double> values = detail::elements_of<double>(expected);
  measure(row, detail::elements_of<double>(actual), values, actual.sizes());
  double scale = options.least_scale;
  for (const double e : values)
    if (std::isfinite(e)) scale = std::max(scale, std::abs(e));
  const DType coarser = epsilon(actual.dtype()) > epsilon(expected.dtype()) ? actual.dtype() : expected.dtype();
  row.bound = scale * (options.bound > 0 ? options.bound : default_bound(coarser, expected.numel(), options.roundings));
  row.passed = row.max_abs <= row.bound;
  return row;
}

bool Report::passed() const noexcept {
  return std::all_of(rows.begin(), rows.end(), [](const Comparison& row) { return row.passed; });
}

std::string Report::table() const {
  size_t width = 6;
  for (const Comparison& row : rows)
    width = std::max(width, row.name.size());
  const auto line = [&](const std::string& name, const std::string& rest) {
    return name + std::string(width + 2 - name.size(), ' ') + rest + "\n";
  };
  std::string text = line("tensor", "max abs    max rel    cosine      bound      ok   worst index: value, expected");
  for (const Comparison& row : rows) {
    if (!row.problem.empty()) {
      text += line(row.name, "NO   " + row.problem);
      continue;
    }
    char cosine[16];
    std::snprintf(cosine, sizeof cosine, "%.7f", row.cosine);
    text += line(row.name, number(row.max_abs) + "   " + number(row.max_rel) + "   " + cosine +
                               (row.cosine < 0 ? "  " : "   ") + number(row.bound) + "   " +
                               (row.passed ? "yes  " : "NO   ") + index_text(row.worst_index) + ": " +
                               full_number(row.actual) + ", " + full_number(row.expected));
  }
  return text;
}

bool is_expectation(const std::string& name) noexcept {
  return !name.starts_with("input.") && !name.starts_with("parameter.") && !name.starts_with("grad_output.");
}

Report compare(const NamedTensors& expected, const NamedTensors& actual, const Options& options) {
  const std::map<std::string, Tensor> wanted = by_name(expected), given = by_name(actual);
  Report report;
  for (const auto& [name, tensor] : expected) {
    const auto found = given.find(name);
    report.rows.push_back(compare(name, found == given.end() ? Tensor() : found->second, tensor, options, true));
  }
  for (const auto& [name, tensor] : actual) {
    if (!wanted.contains(name))
      report.rows.push_back(problem(name, "additional: " + describe(tensor) + " is expected by nobody"));
  }
  return report;
}

Report compare(const std::string& file, const NamedTensors& actual, const Options& options) {
  const SafetensorsFile in(file);
  NamedTensors expected;
  for (const SafetensorsEntry& entry : in.entries())
    if (is_expectation(entry.name)) expected.emplace_back(entry.name, in.tensor(entry.name));
  std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return compare(expected, actual, options);
}

}  // namespace brigade::check
