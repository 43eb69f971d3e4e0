// Datasets of images to train on and to be asked for.
#include <brigade/lab/recipes/resnet/images.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/random.h>
#include <brigade/data/dataset.h>
#include <brigade/data/image_dataset.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/data_path.h>

namespace brigade::lab {
namespace {

// Other crops and mirror images of the same pictures in each epoch. Numbers are drawn from the
// generator that the loader gives to each example: the same with any number of workers and ranks, and
// after a resume.
class ShiftedAndMirrored : public data::Dataset<> {
 public:
  explicit ShiftedAndMirrored(std::shared_ptr<const data::Dataset<>> images) : images_(std::move(images)) {}

  int64_t size() const override { return images_->size(); }
  data::Example get(int64_t index) const override {
    const NoGradGuard constant;
    const data::Example example = images_->get(index);
    const std::vector<double> drawn = rand({3}, kFloat64).to_vector<double>();
    const auto first = [&](double number) { return static_cast<int64_t>(number * (2 * kMargin + 1)); };
    const Tensor framed = pad(example.data, {kMargin, kMargin, kMargin, kMargin});
    Tensor image = framed.narrow(1, first(drawn[0]), example.data.size(1));
    image = image.narrow(2, first(drawn[1]), example.data.size(2));
    if (drawn[2] < 0.5) image = flip(image, {2});
    return {image.contiguous(), example.target};
  }

 private:
  static constexpr int64_t kMargin = 4;
  std::shared_ptr<const data::Dataset<>> images_;
};

std::shared_ptr<data::Dataset<>> enlarged(const Examples& digits) {
  const Tensor images = interpolate(digits.images, {.scale_factor = {{2, 2}}, .mode = InterpolateMode::Bilinear});
  return std::make_shared<data::TensorDataset>(images, digits.labels);
}

}  // namespace

ImageSets load_images(const std::string& folder) {
  if (folder.empty()) {
    const Digits digits = load_digits(digits_path());
    return {enlarged(digits.train), enlarged(digits.test)};
  }
  return {std::make_shared<ShiftedAndMirrored>(std::make_shared<data::CIFAR10>(folder)),
          std::make_shared<data::CIFAR10>(folder, data::Mode::kTest)};
}

}  // namespace brigade::lab
