// Splits the examples into training and test tensors.
#include <brigade/lab/data_path.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>

#include <vector>

namespace brigade::lab {
namespace {

Examples pick(const DigitsFile& file, bool test, DType dtype) {
  std::vector<float> chosen_pixels;
  std::vector<int64_t> chosen_labels;
  for (size_t i = 0; i < file.labels.size(); ++i) {
    if ((i % 5 == 4) != test) continue;
    const auto first = file.pixels.begin() + static_cast<int64_t>(i) * kDigitPixels;
    chosen_pixels.insert(chosen_pixels.end(), first, first + kDigitPixels);
    chosen_labels.push_back(file.labels[i]);
  }
  const auto count = static_cast<int64_t>(chosen_labels.size());
  return {kernels::cast(tensor(chosen_pixels, {count, 1, 8, 8}), dtype), tensor(chosen_labels, {count})};
}

}  // namespace

Digits load_digits(const std::string& path, DType dtype) {
  const DigitsFile file = read_digits_file(path);
  return {pick(file, false, dtype), pick(file, true, dtype)};
}

std::string digits_path() { return data_path("digits.csv.gz", "digits data"); }

}  // namespace brigade::lab
