// Subset: a selection of a dataset's examples; random_split: several disjoint subsets.
#pragma once

#include <brigade/core/error.h>
#include <brigade/data/dataset.h>

#include <memory>
#include <utility>
#include <vector>

namespace brigade::data {

template <class E = Example>
class Subset : public Dataset<E> {
 public:
  // Throws IndexError for an index that the dataset does not have; ValueError without a dataset.
  template <IsDataset D>
  Subset(std::shared_ptr<D> dataset, std::vector<int64_t> indices)
      : dataset_(std::move(dataset)), indices_(std::move(indices)) {
    if (!dataset_) throw ValueError("Subset: there is no dataset");
    for (const int64_t index : indices_) {
      if (index < 0 || index >= dataset_->size())
        throw IndexError("Subset: index {} is out of range; the dataset has {} examples", index, dataset_->size());
    }
  }

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  // Throws IndexError.
  E get(int64_t index) const override { return dataset_->get(inside(index)); }
  std::optional<E> get_batch(std::span<const int64_t> indices) const override {
    std::vector<int64_t> below;
    below.reserve(indices.size());
    for (const int64_t index : indices)
      below.push_back(inside(index));
    return dataset_->get_batch(below);
  }

  // Indices into the underlying dataset, in the order of this one.
  const std::vector<int64_t>& indices() const noexcept { return indices_; }
  const std::shared_ptr<const Dataset<E>>& dataset() const noexcept { return dataset_; }

 private:
  int64_t inside(int64_t index) const {
    if (index < 0 || index >= size())
      throw IndexError("Subset: index {} is out of range; there are {} examples", index, size());
    return indices_[static_cast<size_t>(index)];
  }

  std::shared_ptr<const Dataset<E>> dataset_;
  std::vector<int64_t> indices_;
};

template <IsDataset D>
Subset(std::shared_ptr<D>, std::vector<int64_t>) -> Subset<typename D::ExampleType>;

namespace detail {
// The shuffled indices of each part; see random_split.
std::vector<std::vector<int64_t>> split_indices(int64_t size, const std::vector<double>& lengths, uint64_t seed);
}  // namespace detail

// Parts of these lengths, shuffled by `seed`, the same on every rank. As in PyTorch, lengths that add up to 1 are
// fractions: each part gets that share rounded down, and the remaining examples go to the parts in turn, one each.
//   auto parts = data::random_split(dataset, {0.8, 0.2}, 1);
// Throws ValueError for lengths that are negative, not whole, or do not add up to the size.
template <IsDataset D>
std::vector<std::shared_ptr<Subset<typename D::ExampleType>>> random_split(const std::shared_ptr<D>& dataset,
                                                                           const std::vector<double>& lengths,
                                                                           uint64_t seed = 0) {
  if (!dataset) throw ValueError("random_split: there is no dataset");
  std::vector<std::shared_ptr<Subset<typename D::ExampleType>>> parts;
  for (std::vector<int64_t>& indices : detail::split_indices(dataset->size(), lengths, seed))
    parts.push_back(std::make_shared<Subset<typename D::ExampleType>>(dataset, std::move(indices)));
  return parts;
}

}  // namespace brigade::data
