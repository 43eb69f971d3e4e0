// CIFAR-10: 32 x 32 colour images of ten classes.
#pragma once

#include <brigade/data/image_dataset.h>

namespace brigade::data {

// Images [3, 32, 32] from the files of the binary version ("CIFAR-10 binary version", not the one for
// Python): data_batch_1.bin ... data_batch_5.bin, or test_batch.bin, each as it is or packed
// (".gz"), in the folder itself or in cifar-10-batches-bin below it. Nothing is downloaded.
class CIFAR10 : public ImageDataset {
 public:
  // Throws IoError that names the file and says what was expected, what came, and what to do: a file
  // that is missing, has no whole number of records, or holds a label above 9.
  explicit CIFAR10(const std::string& root, Mode mode = Mode::kTrain);
};

}  // namespace brigade::data
