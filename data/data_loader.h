// DataLoader: the batches of a dataset, epoch after epoch, made ahead of time by worker threads.
//
//   auto digits = std::make_shared<data::TensorDataset>(images, labels);
//   data::DataLoader loader(digits, {.batch_size = 64, .shuffle = true, .seed = 1, .num_workers = 2});  // in this order
//   for (int epoch = 0; epoch < 10; ++epoch)
//     for (const data::Example& batch : loader) loss = cross_entropy(net(batch.data), batch.target);
//
// Order and values are determined by the seed and the epoch; they do not depend on the number of workers.
// On several ranks, pass it a dist::DistributedSampler.
#pragma once

#include <brigade/core/error.h>
#include <brigade/data/dataset.h>
#include <brigade/data/detail/pass.h>
#include <brigade/data/sampler.h>
#include <brigade/optim/optimizer.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace brigade::data {

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;  // by a RandomSampler of the seed; not together with a sampler
  uint64_t seed = 0;
  std::shared_ptr<Sampler> sampler = nullptr;
  bool drop_last = false;   // leaves out a last batch that is not full
  int num_workers = 0;      // threads; 0: the iterating thread makes the batches
  int prefetch_factor = 2;  // at most this many batches ahead per worker
  // Limit of the wait for a batch, and for a worker to end; 0: no limit.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
};

// The part that does not depend on the type of the examples.
class DataLoaderBase {
 public:
  // The number of batches of an epoch.
  int64_t size() const noexcept;
  int64_t dataset_size() const noexcept { return examples_; }
  const DataLoaderOptions& options() const noexcept { return options_; }
  Sampler& sampler() const noexcept { return *sampler_; }
  // Takes effect with the next pass, which is that of epoch 0. Throws ValueError for a null sampler.
  void set_sampler(std::shared_ptr<Sampler> sampler);

  // The current or next epoch. Each begin() moves on to the next one by itself.
  uint64_t epoch() const noexcept { return position().epoch; }
  // The next pass is that of `epoch`, from its beginning, or from the position of a loaded state if the state belongs
  // to this epoch.
  void set_epoch(uint64_t epoch) noexcept;

  // The position of the training: the epoch, and how many of its batches have been taken (including the current one).
  // The same on all ranks. For optim::Checkpoint:
  //   checkpoint.part("data", [&] { return loader.state_dict(); },
  //                   [&](const auto& state) { loader.load_state_dict(state); });
  optim::OptimizerState state_dict() const;
  // The next pass continues after the last batch that was taken, bit for bit:
  //   for (uint64_t epoch = loader.epoch(); epoch < epochs; ++epoch) {
  //     loader.set_epoch(epoch);
  //     for (const auto& batch : loader) ...
  // Throws ValueError for entries that are missing, unknown or invalid, and for a state with another order of examples
  // or another global batch; then nothing has been changed.
  void load_state_dict(const optim::OptimizerState& state, SourceLocation where = SourceLocation::current());

 protected:
  // Throws ValueError: "batch_size should be a positive integer value, but got batch_size=0", "sampler option is
  // mutually exclusive with shuffle", and for other invalid numbers.
  DataLoaderBase(int64_t examples, DataLoaderOptions options, SourceLocation where);
  // Throws IndexError for an index of the sampler that the dataset does not have.
  std::shared_ptr<detail::Pass> start(detail::MakeBatch make);

 private:
  struct Position {
    uint64_t epoch = 0;
    int64_t batches = 0;
  };
  Position position() const noexcept;
  uint64_t fingerprint_of(uint64_t epoch) const;
  int64_t global_batch() const noexcept { return options_.batch_size * sampler_->world_size(); }

  int64_t examples_;
  DataLoaderOptions options_;
  std::shared_ptr<Sampler> sampler_;
  Position next_;  // where the next pass begins, unless one has begun since
  std::shared_ptr<const detail::PassProgress> latest_;
};

// `E`: an example; `Batch`: the collate function's result for several examples.
template <class E = Example, class Batch = E>
class DataLoader : public DataLoaderBase {
 public:
  using ExampleType = E;
  using BatchType = Batch;
  // Several workers call it at the same time.
  using Collate = std::function<Batch(std::vector<E>)>;

  // Batches as default_collate makes them.
  template <IsDatasetOf<E> D>
  requires(std::same_as<E, Batch> && (std::same_as<E, Example> || std::same_as<E, Tensor>)) explicit DataLoader(
      std::shared_ptr<D> dataset, DataLoaderOptions options = {}, SourceLocation where = SourceLocation::current())
      : DataLoaderBase(dataset ? dataset->size() : -1, std::move(options), where), dataset_(std::move(dataset)) {}
  template <IsDatasetOf<E> D>
  DataLoader(std::shared_ptr<D> dataset, DataLoaderOptions options, Collate collate,
             SourceLocation where = SourceLocation::current())
      : DataLoaderBase(dataset ? dataset->size() : -1, std::move(options), where),
        dataset_(std::move(dataset)),
        collate_(std::move(collate)) {}

  // One pass over the data. When the last copy of an iterator is destroyed, also after a `break`, its workers end.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;

    Iterator() noexcept = default;
    explicit Iterator(std::shared_ptr<detail::Pass> pass) : pass_(std::move(pass)) { ++*this; }

    Batch& operator*() const noexcept { return *batch_; }
    Batch* operator->() const noexcept { return batch_.get(); }
    // Throws DataLoaderError, TimeoutError; either ends the pass.
    Iterator& operator++() {
      batch_ = nullptr;  // its memory may be reused for the next one
      batch_ = std::static_pointer_cast<Batch>(pass_->next());
      if (!batch_) pass_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.batch_ == b.batch_; }

   private:
    std::shared_ptr<detail::Pass> pass_;
    std::shared_ptr<Batch> batch_;
  };

  // Starts the next pass; makes, or waits for, its first batch. Throws like Iterator::operator++, and IndexError for an
  // index of the sampler that the dataset does not have.
  Iterator begin() { return Iterator(start(make_batch())); }
  Iterator end() noexcept { return {}; }

  const std::shared_ptr<const Dataset<E>>& dataset() const noexcept { return dataset_; }

 private:
  // The function owns everything it uses, since a worker may outlive the loader.
  detail::MakeBatch make_batch() const {
    return [dataset = dataset_, collate = collate_](std::span<const int64_t> indices,
                                                    detail::BatchInProgress& at) -> std::shared_ptr<void> {
      std::shared_ptr<Batch> batch = made(*dataset, collate, indices, at);
      at.check_made(*batch);
      return batch;
    };
  }
  static std::shared_ptr<Batch> made(const Dataset<E>& dataset, const Collate& collate,
                                     std::span<const int64_t> indices, detail::BatchInProgress& at) {
    constexpr bool kHasDefault = std::same_as<E, Batch> && (std::same_as<E, Example> || std::same_as<E, Tensor>);
    if constexpr (kHasDefault) {
      at.getting_all();
      if (!collate) {
        if (std::optional<E> batch = dataset.get_batch(indices)) return std::make_shared<Batch>(std::move(*batch));
      }
    }
    std::vector<E> examples;
    examples.reserve(indices.size());
    for (const int64_t index : indices) {
      at.getting(index);
      examples.push_back(dataset.get(index));
      at.check_made(examples.back());
    }
    at.collating();
    if constexpr (kHasDefault) {
      if (!collate) return std::make_shared<Batch>(default_collate(examples));
    }
    return std::make_shared<Batch>(collate(std::move(examples)));
  }

  std::shared_ptr<const Dataset<E>> dataset_;
  Collate collate_;
};

template <IsDataset D>
DataLoader(std::shared_ptr<D>) -> DataLoader<typename D::ExampleType>;
template <IsDataset D>
DataLoader(std::shared_ptr<D>, DataLoaderOptions) -> DataLoader<typename D::ExampleType>;
template <IsDataset D, class F>
requires std::invocable<F, std::vector<typename D::ExampleType>> DataLoader(std::shared_ptr<D>, DataLoaderOptions, F)
->DataLoader<typename D::ExampleType, std::invoke_result_t<F, std::vector<typename D::ExampleType>>>;

// --- DataLoaderError: an example could not be loaded, or a batch could not be collated.

// Thrown on the thread that requests the batch from the DataLoader, whether or not workers made it. The message ends
// with the text of the error that the dataset or the collate function threw; that error itself is nested
// (std::rethrow_if_nested).
class DataLoaderError : public Error {
 public:
  DataLoaderError(const std::string& message, uint64_t epoch, int64_t batch, std::vector<int64_t> indices)
      : Error(message), epoch_(epoch), batch_(batch), indices_(std::move(indices)) {}

  uint64_t epoch() const noexcept { return epoch_; }
  // Its number in the epoch, from 0.
  int64_t batch() const noexcept { return batch_; }
  // The example that failed, or all of the batch if they were loaded or collated at once.
  const std::vector<int64_t>& indices() const noexcept { return indices_; }

 private:
  uint64_t epoch_;
  int64_t batch_;
  std::vector<int64_t> indices_;
};

}  // namespace brigade::data
