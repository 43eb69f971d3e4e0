// Unpacks the file, and parses a line of 64 pixels and a digit at a time.
#include <brigade/lab/data_path.h>

#include <brigade/core/error.h>
#include <brigade/data/detail/image_files.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace brigade::lab {
namespace {

// One line: 64 pixels and the digit.
void parse_line(const std::string& path, size_t number, const char* line, const char* end, std::vector<float>& pixels,
                std::vector<int64_t>& labels) {
  const auto fail = [&](const std::string& what) {
    throw IoError("{}, line {}: {}; expected 64 grey values 0..16 and a digit 0..9", path, number, what);
  };
  for (int column = 0; column <= kDigitPixels; ++column) {
    int64_t value = 0;
    const auto [after, error] = std::from_chars(line, end, value);
    if (error == std::errc::invalid_argument) fail("has no number in column " + std::to_string(column + 1));
    if (error != std::errc()) value = std::numeric_limits<int64_t>::max();
    if (value < 0 || value > (column < kDigitPixels ? 16 : 9)) {
      fail("column " + std::to_string(column + 1) + " is " + std::to_string(value));
    }
    if (column < kDigitPixels) {
      pixels.push_back(static_cast<float>(value) / 16.0F);
    } else {
      labels.push_back(value);
    }
    line = after;
    if (column < kDigitPixels) {
      if (line >= end || *line != ',') fail("ends after column " + std::to_string(column + 1));
      ++line;
    }
  }
  if (line < end && *line == '\r') ++line;
  if (line != end) fail("has more than 65 columns");
}

}  // namespace

DigitsFile read_digits_file(const std::string& path) {
  const std::string text = data::detail::read_gzip(
      path, size_t{64} << 20, "digits.csv.gz, a gzip-compressed CSV file of 0.3 MiB when unpacked");
  DigitsFile file;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    parse_line(path, ++number, text.data() + begin, text.data() + end, file.pixels, file.labels);
    begin = end + 1;
  }
  if (file.labels.empty()) throw IoError("{} holds no examples", path);
  return file;
}

}  // namespace brigade::lab
