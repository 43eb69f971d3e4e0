#include <brigade/data/dataset.h>
#include <brigade/data/subset.h>
#include <brigade/kernels/factory.h>

#include <core/error_of.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

namespace brigade::test::dataset_test {
using test::error_of;

namespace {

std::shared_ptr<data::TensorDataset> numbers(int64_t count) {
  return std::make_shared<data::TensorDataset>(arange(0, static_cast<double>(count), 1, {kFloat32}),
                                               arange(0, static_cast<double>(2 * count), 2));
}

}  // namespace

TEST_CASE("an example of a TensorDataset is a row of each tensor, and a batch is these rows in the order asked for") {
  const data::TensorDataset dataset(arange(0, 12, 1, {kFloat32}).reshape({4, 3}), tensor({7, 5, 3, 1}));
  CHECK(dataset.size() == 4);
  const data::Example third = dataset.get(2);
  CHECK(third.data.to_vector<int>() == std::vector<int>{6, 7, 8});
  CHECK(third.data.sizes() == Shape{3});
  CHECK(third.target.item<int>() == 3);
  CHECK(third.target.dim() == 0);

  const std::vector<int64_t> chosen{3, 0, 3};
  const data::Example batch = *dataset.get_batch(chosen);
  CHECK(batch.data.to_vector<int>() == std::vector<int>{9, 10, 11, 0, 1, 2, 9, 10, 11});
  CHECK(batch.data.sizes() == Shape{3, 3});
  CHECK(batch.target.to_vector<int>() == std::vector<int>{1, 7, 1});
  // get_batch() equals get() of each example.
  std::vector<data::Example> one_by_one;
  for (const int64_t index : chosen)
    one_by_one.push_back(dataset.get(index));
  const data::Example stacked = data::default_collate(one_by_one);
  CHECK(stacked.data.sizes() == batch.data.sizes());
  CHECK(stacked.data.to_vector<int>() == batch.data.to_vector<int>());
  CHECK(stacked.target.to_vector<int>() == batch.target.to_vector<int>());

  CHECK(!data::TensorDataset(ones({2})).get(0).target.defined());
}

TEST_CASE("a TensorDataset refuses tensors that do not fit, and indices that are not there") {
  CHECK_THROWS_AS(data::TensorDataset(ones({3, 2}), ones({2})), ShapeError);
  CHECK(error_of([] {
          data::TensorDataset(ones({3, 2}), ones({2}));
        }).starts_with("TensorDataset: size mismatch between tensors: data has 3 rows, target has 2"));
  CHECK_THROWS_AS(data::TensorDataset(scalar_tensor(1)), ShapeError);
  CHECK_THROWS_AS(data::TensorDataset{Tensor()}, ValueError);
  const Tensor weight = ones({2, 2});
  weight.requires_grad_();
  CHECK(error_of([&] { data::TensorDataset{weight}; }).find("requires grad") != std::string::npos);
  const data::TensorDataset dataset(ones({3}));
  CHECK_THROWS_AS(dataset.get(3), IndexError);
  CHECK(error_of([&] { dataset.get(3); }) == "TensorDataset: index 3 is out of range; there are 3 examples");
  CHECK_THROWS_AS(dataset.get(-1), IndexError);
  CHECK_THROWS_AS(dataset.get_batch(std::vector<int64_t>{0, 3}), IndexError);
}

TEST_CASE("default_collate names the first example that differs") {
  const auto message = [](const Tensor& second) {
    return error_of([&] { data::default_collate(std::vector<Tensor>{ones({2}), second}); });
  };
  CHECK(message(ones({3})).starts_with(
      "default_collate: the tensor of example 1 of the batch is float32 [3], of the first float32 [2]; give all"));
  CHECK(
      message(ones({2}, kFloat64)).starts_with("default_collate: the tensor of example 1 of the batch is float64 [2]"));
  CHECK(message(Tensor()).starts_with("default_collate: example 1 of the batch has no tensor"));
  CHECK_THROWS_AS(data::default_collate(std::vector<Tensor>{}), ValueError);
  CHECK_THROWS_AS(data::default_collate(std::vector<data::Example>{}), ValueError);
  CHECK(error_of([] {
          data::default_collate(std::vector<data::Example>{{ones({1}), ones({})}, {ones({1}), Tensor()}});
        }).starts_with("default_collate: example 1 of the batch has no target"));
}

TEST_CASE("random_split shares out every example once, the same way for the same seed") {
  const auto dataset = numbers(103);
  const auto parts = data::random_split(dataset, {60, 40, 3}, 5);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0]->size() == 60);
  CHECK(parts[1]->size() == 40);
  CHECK(parts[2]->size() == 3);
  std::vector<int64_t> all;
  for (const auto& part : parts)
    all.insert(all.end(), part->indices().begin(), part->indices().end());
  CHECK(!std::is_sorted(all.begin(), all.end()));
  std::sort(all.begin(), all.end());
  std::vector<int64_t> expected(103);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(all == expected);

  CHECK(data::random_split(dataset, {60, 40, 3}, 5)[1]->indices() == parts[1]->indices());
  CHECK(data::random_split(dataset, {60, 40, 3}, 6)[1]->indices() != parts[1]->indices());
  // A part returns the examples of the dataset below it.
  const int64_t below = parts[1]->indices()[7];
  CHECK(parts[1]->get(7).data.item<int64_t>() == below);
  CHECK(parts[1]->get_batch(std::vector<int64_t>{7, 7})->target.to_vector<int64_t>() ==
        std::vector<int64_t>{2 * below, 2 * below});
}

TEST_CASE("random_split takes fractions, rounds down and gives what is left to the parts in turn") {
  const auto sizes = [](int64_t count, const std::vector<double>& lengths) {
    std::vector<int64_t> found;
    for (const auto& part : data::random_split(numbers(count), lengths))
      found.push_back(part->size());
    return found;
  };
  CHECK(sizes(10, {0.8, 0.2}) == std::vector<int64_t>{8, 2});
  CHECK(sizes(11, {0.5, 0.25, 0.25}) == std::vector<int64_t>{6, 3, 2});
  CHECK(sizes(5, {1}) == std::vector<int64_t>{5});
  CHECK(sizes(3, {0, 3}) == std::vector<int64_t>{0, 3});
  const auto message = [&](const std::vector<double>& lengths) { return error_of([&] { sizes(10, lengths); }); };
  CHECK(message({4, 5}).starts_with("Sum of input lengths does not equal the length of the input dataset!"));
  CHECK(message({0.8, 0.3}).find("expected whole numbers, or fractions that add up to 1") != std::string::npos);
  CHECK(message({12, -2}).find("at least 0, got -2") != std::string::npos);
}

TEST_CASE("a Subset refuses indices that its dataset does not have, and those that it does not have itself") {
  CHECK_THROWS_AS(data::Subset(numbers(3), {0, 3}), IndexError);
  CHECK_THROWS_AS(data::Subset(numbers(3), {-1}), IndexError);
  CHECK_THROWS_AS(data::Subset(std::shared_ptr<data::TensorDataset>(), {}), ValueError);
  const data::Subset two(numbers(3), {2, 0});
  CHECK(two.size() == 2);
  CHECK(two.get(0).data.item() == 2);
  CHECK_THROWS_AS(two.get(2), IndexError);
  // A subset of a subset.
  const data::Subset last(std::make_shared<data::Subset<>>(two), {1});
  CHECK(last.get(0).target.item() == 0);
}

}  // namespace brigade::test::dataset_test
