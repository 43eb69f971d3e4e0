// ImageDataset: images as bytes in host memory, returned as floats, each with a class.
#pragma once

#include <brigade/data/dataset.h>

#include <string>
#include <utility>
#include <vector>

namespace brigade::data {

enum class Mode : uint8_t { kTrain, kTest };

namespace detail {
// One byte for each channel, row and column of each image, and a class for each image.
struct ImageBytes {
  std::string pixels;
  std::vector<int64_t> labels;
};
}  // namespace detail

// Example i: data [channels, height, width] float32 in 0..1, target int64 without dimensions.
class ImageDataset : public Dataset<> {
 public:
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  // Throws IndexError.
  Example get(int64_t index) const override;
  // data [n, channels, height, width], target [n]. Throws IndexError.
  std::optional<Example> get_batch(std::span<const int64_t> indices) const override;

  // All images and targets, as from get_batch().
  Tensor images() const;
  Tensor targets() const;
  // The sizes of one image: [channels, height, width].
  const Shape& image_sizes() const noexcept { return sizes_; }

 protected:
  ImageDataset(const Shape& sizes, detail::ImageBytes bytes)
      : sizes_(sizes), pixels_(std::move(bytes.pixels)), labels_(std::move(bytes.labels)) {}

 private:
  // Throws IndexError.
  void copy(int64_t index, float* pixels, int64_t& label) const;

  Shape sizes_;
  std::string pixels_;
  std::vector<int64_t> labels_;
};

}  // namespace brigade::data
