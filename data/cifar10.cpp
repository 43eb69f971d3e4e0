// Reads the five files of the training set, or the one of the test set.
#include <brigade/data/cifar10.h>

#include <brigade/data/detail/cifar10_file.h>
#include <brigade/data/detail/image_files.h>

#include <filesystem>

namespace brigade::data {

namespace {

// Whoever has the files of another version looks for these names in vain.
void refuse_other_versions(const std::string& root) {
  for (const char* file : {"data_batch_1", "cifar-10-batches-py", "cifar-10-python.tar.gz", "cifar-10-binary.tar.gz"}) {
    const std::string path = root + "/" + file;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored) || std::filesystem::exists(root + "/cifar-10-batches-bin", ignored) ||
        std::filesystem::exists(root + "/test_batch.bin", ignored))
      continue;
    throw IoError("CIFAR-10: {} is {}", path,
                  std::string(file) == "cifar-10-binary.tar.gz"
                      ? "an archive; unpack it (tar xf), and name the folder cifar-10-batches-bin"
                      : "of the version for Python; download the \"CIFAR-10 binary version\" (cifar-10-binary.tar.gz)");
  }
}

detail::ImageBytes read_cifar10_folder(const std::string& root, Mode mode) {
  refuse_other_versions(root);
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
