// Seeds from counters: the random numbers of an example depend only on seed, epoch and index.
#include <brigade/data/detail/batch_in_progress.h>

#include <brigade/core/error.h>

namespace brigade::data::detail {
namespace {

// The last word separates these streams from the program's own streams of the same seed.
uint64_t stream_of(RandomKey key, uint64_t number, bool of_batch) noexcept {
  const auto words = philox4x32_10({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32),
                                    static_cast<uint32_t>(key.epoch), of_batch ? 0xBA7C4U : 0xE8A5U},
                                   {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
  return (static_cast<uint64_t>(words[0]) << 32) | words[1];
}

std::string list_of(std::span<const int64_t> indices) {
  constexpr size_t kMost = 5;
  std::string text;
  for (size_t i = 0; i < indices.size() && i < kMost; ++i)
    text += (i ? ", " : "") + std::to_string(indices[i]);
  return indices.size() > kMost ? text + ", ..." : text;
}

}  // namespace

BatchInProgress::BatchInProgress(RandomKey key, int64_t batch, std::span<const int64_t> indices, bool on_worker)
    : key_(key), batch_(batch), all_(indices), on_worker_(on_worker), saved_(default_generator()) {}

BatchInProgress::~BatchInProgress() { default_generator() = saved_; }

void BatchInProgress::getting(int64_t index) noexcept {
  at_ = index;
  default_generator() = RandomGenerator(stream_of(key_, static_cast<uint64_t>(index), false));
}

void BatchInProgress::getting_all() noexcept {
  at_ = kAll;
  default_generator() = RandomGenerator(stream_of(key_, static_cast<uint64_t>(all_.front()), true));
}

void BatchInProgress::collating() noexcept {
  getting_all();
  at_ = kCollate;
}

void BatchInProgress::check_made(const Tensor& tensor) const {
  if (!on_worker_ || !tensor.defined() || tensor.device().type == DeviceType::CPU) return;
  throw ValueError(
      "a worker has made a tensor on {}; workers make batches in host memory. Keep the dataset there and move each "
      "batch, or set num_workers = 0",
      to_string(tensor.device()));
}

void BatchInProgress::check_made(const Example& example) const {
  check_made(example.data);
  check_made(example.target);
}

std::vector<int64_t> BatchInProgress::indices() const {
  const int64_t at = at_;
  return at >= 0 ? std::vector<int64_t>{at} : std::vector<int64_t>(all_.begin(), all_.end());
}

std::string BatchInProgress::in_words() const {
  const std::string where = "batch " + std::to_string(batch_) + " of epoch " + std::to_string(key_.epoch);
  const int64_t at = at_;
  if (at >= 0) return "example " + std::to_string(at) + " (" + where + ")";
  return (at == kCollate ? "the collate of " : "") + where + " (examples " + list_of(all_) + ")";
}

}  // namespace brigade::data::detail
