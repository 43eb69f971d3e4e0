// Lays images out as a sheet of gray pixels and encodes it with libpng.
#include <brigade/lab/png.h>

#include <brigade/core/atomic_file.h>
#include <brigade/core/error.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#ifdef BRIGADE_HAVE_PNG
#include <png.h>
#endif

namespace brigade::lab {
namespace {

struct Sheet {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;  // row by row
};

constexpr int64_t kGap = 2;         // pixels between images
constexpr uint8_t kBetween = 0x40;  // gray level of the gaps

Sheet sheet_of(const Tensor& images, int64_t columns, int64_t scale) {
  if (images.dim() != 4 || images.size(1) != 1 || images.numel() == 0 || columns < 1 || scale < 1)
    throw ShapeError("write_png: expected images [n, 1, H, W] with at least one pixel, got {}", describe(images));
  const int64_t count = images.size(0), height = images.size(2), width = images.size(3);
  const int64_t rows = (count + columns - 1) / columns;
  const int64_t across = width * scale + kGap, down = height * scale + kGap;
  Sheet sheet{columns * across - kGap, rows * down - kGap, {}};
  sheet.pixels.assign(static_cast<size_t>(sheet.width * sheet.height), kBetween);
  const std::vector<double> values = images.detach().to_vector<double>();
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t y = 0; y < height * scale; ++y) {
      for (int64_t x = 0; x < width * scale; ++x) {
        const double value = values[static_cast<size_t>((i * height + y / scale) * width + x / scale)];
        const int64_t at = (i / columns * down + y) * sheet.width + i % columns * across + x;
        sheet.pixels[static_cast<size_t>(at)] =
            static_cast<uint8_t>(std::lround(255 * std::clamp(std::isnan(value) ? 0.0 : value, 0.0, 1.0)));
      }
    }
  }
  return sheet;
}

#ifdef BRIGADE_HAVE_PNG
std::string encoded(const Sheet& sheet) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(sheet.width);
  image.height = static_cast<png_uint_32>(sheet.height);
  image.format = PNG_FORMAT_GRAY;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, sheet.pixels.data(), 0, nullptr) == 0)
    throw IoError("libpng: {}", std::string(image.message));
  bytes.resize(size);
  return bytes;
}
#else
std::string encoded(const Sheet&) { return {}; }
#endif

}  // namespace

bool has_png() noexcept {
#ifdef BRIGADE_HAVE_PNG
  return true;
#else
  return false;
#endif
}

void require_png() {
  if (!has_png())
    throw IoError(
        "this program was built without libpng, so it writes no pictures; install libpng-dev and build again");
}

void write_png(const std::string& path, const Tensor& images, int64_t columns, int64_t scale) {
  require_png();
  write_file(path, encoded(sheet_of(images, columns, scale)));
}

}  // namespace brigade::lab
