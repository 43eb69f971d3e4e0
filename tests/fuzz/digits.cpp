// Reads the bytes as the file of the digits; bytes that are not gzip are packed first, so that the lines are reached.
#include "input.h"

#include <brigade/lab/data_path.h>

#include <zlib.h>

#include <vector>

using namespace brigade;

namespace {

void check_file(const std::string& path) {
  const lab::DigitsFile file = lab::read_digits_file(path);
  fuzz::require(file.pixels.size() == file.labels.size() * lab::kDigitPixels, "64 pixels per example");
  for (const float pixel : file.pixels)
    fuzz::require(pixel >= 0 && pixel <= 1, "a pixel lies in 0..1");
  for (const int64_t label : file.labels)
    fuzz::require(label >= 0 && label <= 9, "a label is a digit");
}

std::vector<uint8_t> packed(const uint8_t* data, size_t size) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  if (deflateInit2(&stream, Z_NO_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  std::vector<uint8_t> result(deflateBound(&stream, size));
  stream.next_in = const_cast<uint8_t*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = result.data();
  stream.avail_out = static_cast<uInt>(result.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::run(data, size, check_file);
  if (size >= 2 && data[0] == 0x1f && data[1] == 0x8b) return 0;
  const std::vector<uint8_t> gzip = packed(data, size);
  return fuzz::run(gzip.data(), gzip.size(), check_file);
}
