// Digests gradients by weighted sums, not hashes: a hash would flag rounding differences.
#include <brigade/dist/checks/gradient_values.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/view.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace brigade::dist {
namespace {

constexpr double kSizeOfNonFinite = 1e6;
constexpr int64_t kSome = 64;
constexpr double kScale = 1e9;  // converts sums to integer words

// Tolerance of a difference between digests, in words; the weights of the digests are below 2.
constexpr auto kMostApart = static_cast<int64_t>(GradientValues::kTolerance * kScale);

// During graph capture nothing is computed, and nothing may wait for the device.
bool has_values(const Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0) return false;
  const Device device = tensor.device();
  return device.type == kCPU || !device_runtime(device).is_capturing(device.index);
}

GradientValues values_of_host(const Tensor& values) {
  const double squares = kernels::sum_of_squares(values);
  // NaN, infinity, or a float64 whose square overflows.
  if (!(squares < std::numeric_limits<double>::max())) return {0, kSizeOfNonFinite};
  if (squares == 0) return {};  // also when the squares underflow
  return {kernels::probe(values) / std::sqrt(squares), std::log2(squares) / 2};
}

// A weight in [1, 2) from the fractional parts of multiples of the golden ratio, so that neighbors are far apart.
double weight(size_t position) noexcept {
  const double turn = static_cast<double>(position + 1) * 0.6180339887498949;
  return 1 + turn - std::floor(turn);
}

}  // namespace

bool GradientValues::is_like(const GradientValues& other, double tolerance) const noexcept {
  return std::abs(direction - other.direction) <= tolerance && std::abs(size - other.size) <= tolerance;
}

GradientValues values_of(const Tensor& gradient) {
  if (!has_values(gradient)) return {};
  return values_of_host(brigade::detail::on_host(kernels::contiguous(gradient)));
}

GradientValues values_of_some(const Tensor& gradient) {
  if (!has_values(gradient)) return {};
  if (gradient.numel() <= kSome || !gradient.is_contiguous()) return values_of(gradient);
  const Tensor flat = view::as_strided(gradient, {kSome}, {1}, gradient.storage_offset());
  return values_of_host(brigade::detail::on_host(flat));
}

std::vector<int> odd_among(std::span<const GradientValues> by_rank) {
  for (const GradientValues& candidate : by_rank) {
    std::vector<int> odd;
    for (size_t r = 0; r < by_rank.size(); ++r) {
      if (!by_rank[r].is_like(candidate)) odd.push_back(static_cast<int>(r));
    }
    if (2 * odd.size() < by_rank.size()) return odd;
  }
  return {};
}

void ValuesDigest::add(size_t position, const GradientValues& values) noexcept {
  directions_ += weight(position) * values.direction;
  sizes_ += weight(position) * values.size;
}

std::array<int64_t, ValuesDigest::kWords> ValuesDigest::words() const noexcept {
  const auto word = [](double sum) { return std::llround(std::clamp(sum, -1e9, 1e9) * kScale); };
  return {word(directions_), word(-directions_), word(sizes_), word(-sizes_)};
}

bool ValuesDigest::differ(const int64_t* maxima) noexcept {
  return maxima[0] + maxima[1] > kMostApart || maxima[2] + maxima[3] > kMostApart;
}

}  // namespace brigade::dist
