// MNIST and the data sets in its format: Fashion-MNIST, KMNIST.
#pragma once

#include <brigade/data/image_dataset.h>

namespace brigade::data {

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

}  // namespace brigade::data
