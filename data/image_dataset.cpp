// Converts bytes to floats when an image is requested: bytes take a quarter of the memory.
#include <brigade/data/image_dataset.h>

#include <brigade/core/factory.h>

#include <numeric>

namespace brigade::data {

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

}  // namespace brigade::data
