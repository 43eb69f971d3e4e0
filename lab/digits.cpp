#include <brigade/lab/digits.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>

#include <zlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace brigade::lab {

namespace {

constexpr int kPixels = 64;

std::string read_gzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) throw IoError("cannot open " + path + ": " + std::strerror(errno));
  struct Close {
    gzFile file;
    ~Close() { gzclose(file); }
  } close{file};
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const int count = gzread(file, buffer, sizeof buffer);
    if (count > 0) text.append(buffer, static_cast<size_t>(count));
    if (count < static_cast<int>(sizeof buffer)) {
      int code = Z_OK;
      const char* message = gzerror(file, &code);
      // A file that ends inside the stream reads as a short read with Z_BUF_ERROR.
      if (count < 0 || code == Z_BUF_ERROR) {
        throw IoError(path + " is damaged or truncated: " + (code == Z_BUF_ERROR ? "unexpected end of file" : message) +
                      " after " + std::to_string(text.size()) + " bytes of text; get the file again");
      }
      break;
    }
  }
  if (gzdirect(file) && !text.empty()) throw IoError(path + " is not a gzip file; expected a compressed CSV file");
  return text;
}

// One line: 64 pixels and the digit.
void parse_line(const std::string& path, size_t number, const char* line, const char* end, std::vector<float>& pixels,
                std::vector<int64_t>& labels) {
  const auto fail = [&](const std::string& what) {
    throw IoError(path + ", line " + std::to_string(number) + ": " + what +
                  "; expected 64 grey values 0..16 and a digit 0..9");
  };
  for (int column = 0; column <= kPixels; ++column) {
    char* after = nullptr;
    const long value = line < end ? std::strtol(line, &after, 10) : 0;
    if (line >= end || after == line || after > end) fail("has no number in column " + std::to_string(column + 1));
    if (value < 0 || value > (column < kPixels ? 16 : 9)) {
      fail("column " + std::to_string(column + 1) + " is " + std::to_string(value));
    }
    if (column < kPixels) {
      pixels.push_back(static_cast<float>(value) / 16.0F);
    } else {
      labels.push_back(value);
    }
    line = after;
    if (column < kPixels) {
      if (line >= end || *line != ',') fail("ends after column " + std::to_string(column + 1));
      ++line;
    }
  }
  if (line < end && *line == '\r') ++line;
  if (line != end) fail("has more than 65 columns");
}

Examples pick(const std::vector<float>& pixels, const std::vector<int64_t>& labels, bool test, DType dtype) {
  std::vector<float> chosen_pixels;
  std::vector<int64_t> chosen_labels;
  for (size_t i = 0; i < labels.size(); ++i) {
    if ((i % 5 == 4) != test) continue;
    chosen_pixels.insert(chosen_pixels.end(), pixels.begin() + static_cast<int64_t>(i) * kPixels,
                         pixels.begin() + static_cast<int64_t>(i + 1) * kPixels);
    chosen_labels.push_back(labels[i]);
  }
  const auto count = static_cast<int64_t>(chosen_labels.size());
  return {kernels::cast(tensor(chosen_pixels, {count, 1, 8, 8}), dtype), tensor(chosen_labels, {count})};
}

}  // namespace

Digits load_digits(const std::string& path, DType dtype) {
  const std::string text = read_gzip(path);
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    parse_line(path, ++number, text.data() + begin, text.data() + end, pixels, labels);
    begin = end + 1;
  }
  if (labels.empty()) throw IoError(path + " holds no examples");
  return {pick(pixels, labels, false, dtype), pick(pixels, labels, true, dtype)};
}

std::string digits_path() {
  namespace fs = std::filesystem;
  constexpr const char* kFile = "digits.csv.gz";
  std::vector<fs::path> places;
  if (const char* chosen = std::getenv("BRIGADE_DATA_DIR")) {
    places.emplace_back(fs::path(chosen) / kFile);
  } else {
#ifdef BRIGADE_DATA_DIR
    places.emplace_back(fs::path(BRIGADE_DATA_DIR) / kFile);
#endif
    std::error_code ignored;
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
    places.emplace_back(program.parent_path().parent_path() / "share/brigade/data" / kFile);
  }
  std::string tried;
  for (const fs::path& place : places) {
    if (fs::exists(place)) return place.string();
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  throw IoError("cannot find the digits data; looked for " + tried +
                ". Set BRIGADE_DATA_DIR to the folder that holds digits.csv.gz");
}

}  // namespace brigade::lab
