#include <brigade/data/data_loader.h>
#include <brigade/data/image_dataset.h>

#include <core/error_of.h>
#include <data/image_files.h>

#include <doctest/doctest.h>

namespace brigade::test::mnist_test {
using test::error_of;
using test::TemporaryFolder;
using test::write_bytes;

namespace {

constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";

// The error message for a folder with these two files.
std::string message_of(const std::string& images, const std::string& labels) {
  const TemporaryFolder folder;
  write_bytes(folder / kImages, images);
  write_bytes(folder / kLabels, labels);
  CHECK_THROWS_AS(data::MNIST(folder.text()), IoError);
  std::string message = error_of([&] { data::MNIST(folder.text()); });
  // The path differs from run to run.
  const size_t at = message.find(folder.text());
  REQUIRE(at != std::string::npos);
  for (size_t found = at; found != std::string::npos; found = message.find(folder.text()))
    message.erase(found, folder.text().size() + 1);
  return message;
}

}  // namespace

TEST_CASE("MNIST is read from its four files: grey values in 0..1 and classes") {
  const TemporaryFolder folder;
  write_bytes(folder / kImages, test::idx_images(12));
  write_bytes(folder / kLabels, test::idx_labels(12));
  write_bytes(folder / "t10k-images-idx3-ubyte", test::idx_images(3));
  write_bytes(folder / "t10k-labels-idx1-ubyte", test::idx_labels(3));
  const data::MNIST train(folder.text());
  CHECK(train.size() == 12);
  CHECK(train.image_sizes() == Shape{1, 28, 28});
  const data::Example eleventh = train.get(10);
  CHECK(eleventh.data.sizes() == Shape{1, 28, 28});
  CHECK(eleventh.data.dtype() == kFloat32);
  const std::vector<float> pixels = eleventh.data.to_vector<float>();
  for (size_t p = 0; p < pixels.size(); ++p)
    REQUIRE(pixels[p] == static_cast<float>((10 + p) % 256) / 255.0F);
  CHECK(eleventh.target.item<int>() == 0);
  CHECK(eleventh.target.dtype() == kInt64);
  CHECK(train.targets().to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1});
  CHECK(train.images().sizes() == Shape{12, 1, 28, 28});
  CHECK(train.images().select(0, 10).to_vector<float>() == pixels);
  CHECK_THROWS_AS(train.get(12), IndexError);
  CHECK_THROWS_AS(train.get(-1), IndexError);
  CHECK(data::MNIST(folder.text(), data::Mode::kTest).size() == 3);

  data::DataLoader loader(std::make_shared<data::MNIST>(folder.text()), {.batch_size = 5, .num_workers = 1});
  auto batch = loader.begin();
  ++batch;
  CHECK(batch->data.sizes() == Shape{5, 1, 28, 28});
  CHECK(batch->target.to_vector<int>() == std::vector<int>{5, 6, 7, 8, 9});
  CHECK(batch->data.select(0, 0).to_vector<float>() == train.get(5).data.to_vector<float>());
}

TEST_CASE("the files may be packed, under either name, and lie where torchvision puts them") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "FashionMNIST/raw");
  test::write_gzip(folder / "FashionMNIST/raw/train-images-idx3-ubyte.gz", test::idx_images(4));
  test::write_gzip(folder / "FashionMNIST/raw/train-labels-idx1-ubyte", test::idx_labels(4));
  CHECK(data::FashionMNIST(folder.text()).targets().to_vector<int>() == std::vector<int>{0, 1, 2, 3});
  CHECK(data::FashionMNIST(folder / "FashionMNIST/raw").get(3).data.to_vector<float>()[2] == 5 / 255.0F);
  CHECK(error_of([&] { data::MNIST{folder.text()}; }) ==
        "MNIST: found neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz in " + folder.text() + " and " +
            folder / "MNIST/raw; download the data set and name the folder that holds its files");
}

TEST_CASE("a file that is not what it should be is an IoError that says what came and what was expected") {
  const std::string images = test::idx_images(4), labels = test::idx_labels(4);
  const struct {
    std::string images, labels, expected;
  } rows[] = {
      {labels, images,
       "train-images-idx3-ubyte begins with the magic number 0x00000801, expected 0x00000803: images of MNIST as an "
       "IDX file of 3 dimensions. Are images and labels exchanged?"},
      {images, images,
       "train-labels-idx1-ubyte begins with the magic number 0x00000803, expected 0x00000801: labels of MNIST as an "
       "IDX file of 1 dimension. Are images and labels exchanged?"},
      {"<html>not found</html>", labels, "train-images-idx3-ubyte begins with the magic number 0x3c68746d"},
      {"", labels, "train-images-idx3-ubyte holds 0 bytes; expected images of MNIST"},
      {images.substr(0, 3), labels, "train-images-idx3-ubyte holds 3 bytes; expected images of MNIST"},
      {images.substr(0, 15), labels, "train-images-idx3-ubyte ends after 15 of the 16 bytes of its header"},
      {images.substr(0, 16), labels, "train-images-idx3-ubyte announces 4 x 28 x 28 values and holds 0: it was cut"},
      {images.substr(0, images.size() - 1), labels,
       "train-images-idx3-ubyte announces 4 x 28 x 28 values and holds 3135"},
      {images + "x", labels, "train-images-idx3-ubyte announces 4 x 28 x 28 values and holds 3137"},
      {images, labels + "x", "train-labels-idx1-ubyte announces 4 values and holds 5"},
      {test::idx_bytes(0x803, {4294967295U, 4294967295U, 4294967295U}, "x"), labels,
       "train-images-idx3-ubyte announces 4294967295 x 4294967295 x 4294967295 values and holds 1"},
      {test::idx_bytes(0x803, {2, 32, 32}, test::pixels_of(2, 1024)), labels,
       "train-images-idx3-ubyte holds images of 32 x 32, expected 28 x 28; is it a file of MNIST?"},
      {images, test::idx_labels(5),
       "train-images-idx3-ubyte holds 4 images and train-labels-idx1-ubyte holds 5 labels"},
      {test::idx_images(0), test::idx_labels(0), "train-images-idx3-ubyte holds no images"},
      {images, test::idx_bytes(0x801, {4}, {1, 2, 10, 3}),
       "train-labels-idx1-ubyte, label 2: it is 10, expected 0..9; is it a file of MNIST?"},
  };
  for (const auto& row : rows) {
    const std::string message = message_of(row.images, row.labels);
    CAPTURE(message);
    CHECK(message.starts_with(row.expected));
  }
}

TEST_CASE("a packed file that is damaged, and a folder in the place of a file, are errors that name them") {
  const TemporaryFolder folder;
  write_bytes(folder / kLabels, test::idx_labels(4));
  test::write_gzip(folder / kImages, test::idx_images(4));
  const std::string packed = test::read_bytes(folder / kImages);
  write_bytes(folder / kImages, packed.substr(0, packed.size() / 2));
  CHECK(error_of([&] {
          data::MNIST{folder.text()};
        }).starts_with(folder / kImages + " is damaged or truncated: unexpected end of file after "));
  std::filesystem::remove(folder / kImages);
  std::filesystem::create_directory(folder / kImages);
  CHECK(error_of([&] { data::MNIST{folder.text()}; }) ==
        "cannot read " + folder / kImages + ": it is not a regular file");
}

}  // namespace brigade::test::mnist_test
