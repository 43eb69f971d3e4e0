// Reads the five files of the training set, or the one of the test set.
#include <brigade/data/cifar10.h>

#include <brigade/data/detail/cifar10_file.h>
#include <brigade/data/detail/image_files.h>

#include <filesystem>

namespace brigade::data {

namespace {

// Throws an IoError with the remedy if `root` holds another version of the files, or an archive that is not unpacked.
void refuse_other_versions(const std::string& root) {
  const auto is_there = [&](const std::string& file) {
    std::error_code ignored;
    return std::filesystem::exists(root + "/" + file, ignored);
  };
  if (is_there("cifar-10-batches-bin") || is_there("test_batch.bin")) return;
  const std::string archive = "cifar-10-binary.tar.gz";
  for (const std::string file : {"data_batch_1", "cifar-10-batches-py", "cifar-10-python.tar.gz"}) {
    if (is_there(file))
      throw IoError("CIFAR-10: {}/{} is of the version for Python; download the \"CIFAR-10 binary version\" ({})", root,
                    file, archive);
  }
  if (is_there(archive))
    throw IoError("CIFAR-10: {}/{} is an archive; unpack it (tar xf), and name the folder cifar-10-batches-bin", root,
                  archive);
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
