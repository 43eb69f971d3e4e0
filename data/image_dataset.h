// Datasets of images: ImageDataset, and the files of MNIST and CIFAR-10.
#pragma once

#include <brigade/data/dataset.h>

#include <string>
#include <utility>
#include <vector>

namespace brigade::data {

// --- ImageDataset: images as bytes in host memory, returned as floats, each with a class.

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

// --- MNIST and the data sets in its format: Fashion-MNIST, KMNIST.

// 28 x 28 gray images, [1, 28, 28], of ten classes, from the four IDX files in a folder:
//   train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte
// each plain or compressed (".gz"), in the folder itself or in its subfolder MNIST/raw, where torchvision keeps them.
// Nothing is downloaded.
class MNIST : public ImageDataset {
 public:
  // Throws an IoError that names the file, the expected and the actual content, and the fix: for a file that is
  // missing, has another magic number, was truncated, holds images of another size or labels above 9, or whose number
  // of labels is not that of the images.
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain) : MNIST(root, mode, "MNIST") {}

 protected:
  MNIST(const std::string& root, Mode mode, const char* name);
};

// Files of the same names with images of clothes; in the folder itself or in its subfolder FashionMNIST/raw.
class FashionMNIST : public MNIST {
 public:
  explicit FashionMNIST(const std::string& root, Mode mode = Mode::kTrain) : MNIST(root, mode, "FashionMNIST") {}
};

// --- CIFAR-10: 32 x 32 color images of ten classes.

// Images [3, 32, 32] from the files of the binary version ("CIFAR-10 binary version", not the one for Python):
// data_batch_1.bin ... data_batch_5.bin, or test_batch.bin, each plain or compressed (".gz"), in the folder itself or
// in its subfolder cifar-10-batches-bin. Nothing is downloaded.
class CIFAR10 : public ImageDataset {
 public:
  // Throws an IoError that names the file, the expected and the actual content, and the fix: for a file that is
  // missing, whose size is not a whole number of records, or that holds a label above 9.
  explicit CIFAR10(const std::string& root, Mode mode = Mode::kTrain);
};

}  // namespace brigade::data
