// DataLoaderError: an example could not be loaded, or a batch could not be collated.
#pragma once

#include <brigade/core/error.h>

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

namespace brigade::data {

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
