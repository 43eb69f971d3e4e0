// Unpacks the file by zlib, and parses a line of 64 pixels and a digit at a time.
#include <brigade/lab/digits_file.h>

#include <brigade/core/error.h>

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>

namespace brigade::lab {

namespace {

std::string read_gzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) throw IoError("cannot open {}: {}", path, std::strerror(errno));
  struct Close {
    gzFile file;
    ~Close() { gzclose(file); }
  } close{file};
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const int count = gzread(file, buffer, sizeof buffer);
    if (count > 0) text.append(buffer, static_cast<size_t>(count));
    // A small file can unpack to a thousand times its size.
    constexpr size_t kMostText = size_t{64} << 20;
    if (text.size() > kMostText)
      throw IoError("{} unpacks to more than 64 MiB of text; expected digits.csv.gz, about 0.3 MiB", path);
    if (count < static_cast<int>(sizeof buffer)) {
      int code = Z_OK;
      const char* message = gzerror(file, &code);
      // A file that ends inside the stream reads as a short read with Z_BUF_ERROR.
      if (count < 0 || code == Z_BUF_ERROR) {
        throw IoError("{} is damaged or truncated: {} after {} bytes of text; get the file again", path,
                      code == Z_BUF_ERROR ? "unexpected end of file" : message, text.size());
      }
      break;
    }
  }
  if (gzdirect(file) && !text.empty()) throw IoError("{} is not a gzip file; expected a compressed CSV file", path);
  return text;
}

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
  const std::string text = read_gzip(path);
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
