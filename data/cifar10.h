// CIFAR-10: 32 x 32 color images of ten classes.
#pragma once

#include <brigade/data/image_dataset.h>

namespace brigade::data {

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
