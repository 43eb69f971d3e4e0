// Reads the five files of the training set, or the one of the test set.
#include <brigade/data/cifar10.h>

#include <brigade/data/detail/cifar10_file.h>
#include <brigade/data/detail/image_files.h>

namespace brigade::data {

namespace {

detail::ImageBytes read_cifar10_folder(const std::string& root, Mode mode) {
  const std::vector<std::string> folders{root, root + "/cifar-10-batches-bin"};
  std::vector<std::string> paths;
  if (mode == Mode::kTest) {
    paths.push_back(detail::find_file("CIFAR-10", folders, "test_batch.bin"));
  } else {
    for (int i = 1; i <= 5; ++i)
      paths.push_back(detail::find_file("CIFAR-10", folders, "data_batch_" + std::to_string(i) + ".bin"));
  }
  detail::ImageBytes files;
  for (const std::string& path : paths)
    detail::read_cifar10(path, files.pixels, files.labels);
  return files;
}

}  // namespace

CIFAR10::CIFAR10(const std::string& root, Mode mode) : ImageDataset({3, 32, 32}, read_cifar10_folder(root, mode)) {}

}  // namespace brigade::data
