// DataLoaderError: an example that could not be had, or a batch that could not be put together.
#pragma once

#include <brigade/core/error.h>

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

namespace brigade::data {

// Thrown to whoever asks the DataLoader for the batch, on that thread, whether workers have made it
// or not. The message ends with the text of the error that the dataset or the collate threw; that
// error itself is nested (std::rethrow_if_nested).
class DataLoaderError : public Error {
 public:
  DataLoaderError(const std::string& message, uint64_t epoch, int64_t batch, std::vector<int64_t> indices)
      : Error(message), epoch_(epoch), batch_(batch), indices_(std::move(indices)) {}

  uint64_t epoch() const noexcept { return epoch_; }
  // Its number in the epoch, from 0.
  int64_t batch() const noexcept { return batch_; }
  // The example that failed; all of the batch where they were taken or put together at once.
  const std::vector<int64_t>& indices() const noexcept { return indices_; }

 private:
  uint64_t epoch_;
  int64_t batch_;
  std::vector<int64_t> indices_;
};

}  // namespace brigade::data
