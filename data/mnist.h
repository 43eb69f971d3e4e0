// MNIST and the sets that come in its format: Fashion-MNIST, KMNIST.
#pragma once

#include <brigade/data/image_dataset.h>

namespace brigade::data {

// 28 x 28 grey images, [1, 28, 28], of ten classes, from the four IDX files in a folder:
//   train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte
// each as it is or packed (".gz"), in the folder itself or in MNIST/raw below it, where torchvision
// keeps them. Nothing is downloaded.
class MNIST : public ImageDataset {
 public:
  // Throws IoError that names the file and says what was expected, what came, and what to do: a file
  // that is missing, has another magic number, was cut short, holds images of another size, labels
  // above 9, or another number of labels than images.
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain) : MNIST(root, mode, "MNIST") {}

 protected:
  MNIST(const std::string& root, Mode mode, const char* name);
};

// The same files, of clothes; in the folder itself or in FashionMNIST/raw below it.
class FashionMNIST : public MNIST {
 public:
  explicit FashionMNIST(const std::string& root, Mode mode = Mode::kTrain) : MNIST(root, mode, "FashionMNIST") {}
};

}  // namespace brigade::data
