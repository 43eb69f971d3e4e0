// Images are kept as bytes, a quarter of the memory of floats; MNIST and CIFAR-10 are read from the first folder that
// has them.
#include <brigade/data/image_dataset.h>

#include <brigade/core/error.h>
#include <brigade/core/factory.h>
#include <brigade/data/detail/image_files.h>

#include <filesystem>
#include <numeric>

namespace brigade::data {

// --- Converts bytes to floats when an image is requested: bytes take a quarter of the memory.

void ImageDataset::copy(int64_t index, float* pixels, int64_t& label) const {
  if (index < 0 || index >= size())
    throw IndexError("dataset of images: index {} is out of range; there are {} images", index, size());
  const int64_t count = sizes_[0] * sizes_[1] * sizes_[2];
  const char* const from = pixels_.data() + index * count;
  for (int64_t i = 0; i < count; ++i)
    pixels[i] = static_cast<float>(static_cast<unsigned char>(from[i])) / 255.0F;
  label = labels_[static_cast<size_t>(index)];
}

Example ImageDataset::get(int64_t index) const {
  Example example{empty(sizes_), empty({}, kInt64)};
  copy(index, example.data.data_ptr<float>(), *example.target.data_ptr<int64_t>());
  return example;
}

std::optional<Example> ImageDataset::get_batch(std::span<const int64_t> indices) const {
  const auto count = static_cast<int64_t>(indices.size());
  Example batch{empty({count, sizes_[0], sizes_[1], sizes_[2]}), empty({count}, kInt64)};
  const int64_t pixels = sizes_[0] * sizes_[1] * sizes_[2];
  for (int64_t i = 0; i < count; ++i) {
    copy(indices[static_cast<size_t>(i)], batch.data.data_ptr<float>() + i * pixels,
         batch.target.data_ptr<int64_t>()[i]);
  }
  return batch;
}

Tensor ImageDataset::images() const {
  std::vector<int64_t> all(labels_.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  return get_batch(all)->data;
}

Tensor ImageDataset::targets() const { return tensor(labels_, {size()}); }

// --- Finds the files, and checks images and labels against each other.

namespace {

detail::ImageBytes read_mnist(const std::string& root, Mode mode, const std::string& name) {
  const std::string part = mode == Mode::kTrain ? "train" : "t10k";
  const std::vector<std::string> folders{root, root + "/" + name + "/raw"};
  const std::string image_path = detail::find_file(name, folders, part + "-images-idx3-ubyte");
  const std::string label_path = detail::find_file(name, folders, part + "-labels-idx1-ubyte");
  detail::IdxFile images = detail::read_idx(image_path, 3, "images of " + name + " as an IDX file of 3 dimensions");
  const detail::IdxFile labels =
      detail::read_idx(label_path, 1, "labels of " + name + " as an IDX file of 1 dimension");
  if (images.sizes[1] != 28 || images.sizes[2] != 28) {
    throw IoError("{} holds images of {} x {}, expected 28 x 28; is it a file of {}?", image_path, images.sizes[1],
                  images.sizes[2], name);
  }
  if (images.sizes[0] != labels.sizes[0]) {
    throw IoError("{} holds {} images and {} holds {} labels; expected as many, so get both files again", image_path,
                  images.sizes[0], label_path, labels.sizes[0]);
  }
  if (images.sizes[0] == 0) throw IoError("{} holds no images; get the file again", image_path);
  detail::ImageBytes files{std::move(images.values), {}};
  for (const char byte : labels.values) {
    const auto label = static_cast<unsigned char>(byte);
    if (label > 9) {
      throw IoError("{}, label {}: it is {}, expected 0..9; is it a file of {}?", label_path, files.labels.size(),
                    static_cast<int>(label), name);
    }
    files.labels.push_back(label);
  }
  return files;
}

}  // namespace

MNIST::MNIST(const std::string& root, Mode mode, const char* name)
    : ImageDataset({1, 28, 28}, read_mnist(root, mode, name)) {}

// --- Reads the five files of the training set, or the one of the test set.

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

namespace brigade::data::detail {

// --- Looks in each folder for the plain file, then for the compressed one.

std::string find_file(const std::string& dataset, const std::vector<std::string>& folders, const std::string& file) {
  std::string looked_in;
  for (const std::string& folder : folders) {
    for (const char* ending : {"", ".gz"}) {
      std::error_code ignored;
      std::string path = (std::filesystem::path(folder) / (file + ending)).string();
      if (std::filesystem::exists(path, ignored)) return path;
    }
    looked_in += (looked_in.empty() ? "" : " and ") + folder;
  }
  throw IoError("{}: found neither {} nor {}.gz in {}; download the data set and name the folder that holds its files",
                dataset, file, file, looked_in);
}

}  // namespace brigade::data::detail
