// Finds the files, and checks images and labels against each other.
#include <brigade/data/mnist.h>

#include <brigade/data/detail/idx_file.h>
#include <brigade/data/detail/image_files.h>

namespace brigade::data {

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

}  // namespace brigade::data
