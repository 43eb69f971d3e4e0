#include <brigade/autograd/functional.h>
#include <brigade/core/warning.h>
#include <brigade/data/data_loader.h>
#include <brigade/data/dataset.h>

#include <core/error_of.h>
#include <data/datasets.h>

#include <doctest/doctest.h>

namespace brigade::test::data_loader_test {
using test::Augmented;
using test::error_of;
using test::pass_of;

namespace {

using Batches = std::vector<std::vector<int64_t>>;

std::shared_ptr<Augmented> examples(int64_t count) { return std::make_shared<Augmented>(count); }

}  // namespace

TEST_CASE("batches come in the order of the sampler; the last one is short, or left out") {
  data::DataLoader loader(examples(7), {.batch_size = 3});
  CHECK(loader.size() == 3);
  CHECK(loader.dataset_size() == 7);
  CHECK(pass_of(loader).indices == Batches{{0, 1, 2}, {3, 4, 5}, {6}});
  data::DataLoader full(examples(7), {.batch_size = 3, .drop_last = true});
  CHECK(full.size() == 2);
  CHECK(pass_of(full).indices == Batches{{0, 1, 2}, {3, 4, 5}});
  data::DataLoader empty(examples(0));
  CHECK(pass_of(empty).indices.empty());
}

TEST_CASE("an epoch of which drop_last leaves nothing is reported, and is empty") {
  std::vector<std::string> said;
  const auto before = set_warning_handler([&](const Warning& warning) { said.push_back(warning.message); });
  data::DataLoader none(examples(2), {.batch_size = 3, .drop_last = true});
  CHECK(none.size() == 0);
  CHECK(pass_of(none).indices.empty());
  data::DataLoader one(examples(3), {.batch_size = 3, .drop_last = true});
  CHECK(pass_of(one).indices.size() == 1);
  data::DataLoader empty(examples(0), {.drop_last = true});
  CHECK(pass_of(empty).indices.empty());
  set_warning_handler(before);
  CHECK(said == std::vector<std::string>{"DataLoader: an epoch has no batch: its 2 examples do not fill one of "
                                         "batch_size=3, and drop_last leaves it out"});
}

TEST_CASE("a shuffled loader has another order in each epoch, and the same in the same epoch") {
  data::DataLoader loader(examples(20), {.batch_size = 4, .shuffle = true, .seed = 9});
  const test::Seen first = pass_of(loader);
  CHECK(first.indices != Batches{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}, {16, 17, 18, 19}});
  CHECK(loader.epoch() == 1);
  const test::Seen second = pass_of(loader);
  CHECK(second.indices != first.indices);
  CHECK(second.numbers != first.numbers);
  loader.set_epoch(0);
  CHECK(pass_of(loader) == first);
  CHECK(pass_of(loader) == second);  // the next epoch, without set_epoch()
  loader.set_epoch(7);
  CHECK(loader.epoch() == 7);
  CHECK(pass_of(loader).indices != first.indices);
  data::DataLoader other(examples(20), {.batch_size = 4, .shuffle = true, .seed = 10});
  CHECK(pass_of(other).indices != first.indices);
}

TEST_CASE("a pass that was given up is followed by the next epoch, from its beginning") {
  data::DataLoader loader(examples(6), {.batch_size = 2, .shuffle = true});
  for (const data::Example& batch : loader) {
    static_cast<void>(batch);
    break;
  }
  CHECK(loader.epoch() == 0);
  const test::Seen next = pass_of(loader);
  data::DataLoader fresh(examples(6), {.batch_size = 2, .shuffle = true});
  fresh.set_epoch(1);
  CHECK(pass_of(fresh) == next);
}

TEST_CASE("what an example draws depends on seed, epoch and index, and leaves the generator of the training alone") {
  manual_seed(42);
  const double expected = rand({}, kFloat64).item();
  manual_seed(42);
  data::DataLoader by_two(examples(10), {.batch_size = 2, .seed = 3});
  const test::Seen two = pass_of(by_two);
  CHECK(rand({}, kFloat64).item() == expected);
  data::DataLoader by_five(examples(10), {.batch_size = 5, .seed = 3});
  const test::Seen five = pass_of(by_five);
  for (size_t i = 0; i < 10; ++i)
    CHECK(two.numbers[i / 2][i % 2] == five.numbers[i / 5][i % 5]);
  CHECK(two.numbers[0][0] != two.numbers[0][1]);
  data::DataLoader reseeded(examples(10), {.batch_size = 5, .seed = 4});
  CHECK(pass_of(reseeded).numbers != five.numbers);
}

TEST_CASE("a collate makes anything of the examples, whose type is free") {
  struct Words : data::Dataset<std::string> {
    int64_t size() const override { return 5; }
    std::string get(int64_t index) const override { return std::string(static_cast<size_t>(index), 'a'); }
  };
  data::DataLoader loader(std::make_shared<Words>(), {.batch_size = 2}, [](std::vector<std::string> words) {
    size_t letters = 0;
    for (const std::string& word : words)
      letters += word.size();
    return letters;
  });
  static_assert(std::is_same_v<decltype(loader)::BatchType, size_t>);
  std::vector<size_t> letters;
  for (const size_t count : loader)
    letters.push_back(count);
  CHECK(letters == std::vector<size_t>{1, 5, 4});

  struct Rows : data::Dataset<Tensor> {
    int64_t size() const override { return 3; }
    Tensor get(int64_t index) const override { return full({2}, static_cast<double>(index)); }
  };
  data::DataLoader rows(std::make_shared<Rows>(), {.batch_size = 3});
  for (const Tensor& batch : rows)
    CHECK(batch.to_vector<int>() == std::vector<int>{0, 0, 1, 1, 2, 2});
}

TEST_CASE("a TensorDataset is asked for whole batches, unless there is a collate") {
  struct Counting : data::TensorDataset {
    using TensorDataset::TensorDataset;
    mutable int single = 0;
    data::Example get(int64_t index) const override {
      ++single;
      return TensorDataset::get(index);
    }
  };
  const auto dataset = std::make_shared<Counting>(arange(0, 4, 1, {kFloat32}), arange(4, 8));
  data::DataLoader loader(dataset, {.batch_size = 4, .shuffle = true, .seed = 1});
  for (const data::Example& batch : loader)
    CHECK((batch.data + 4.0).to_vector<int>() == batch.target.to_vector<int>());
  CHECK(dataset->single == 0);
  data::DataLoader collated(dataset, {.batch_size = 4},
                            [](const std::vector<data::Example>& rows) { return data::default_collate(rows); });
  for (const data::Example& batch : collated)
    CHECK(batch.target.to_vector<int>() == std::vector<int>{4, 5, 6, 7});
  CHECK(dataset->single == 4);
}

TEST_CASE("options that make no sense are refused where the loader is made") {
  const auto message = [](data::DataLoaderOptions options) {
    return error_of([&] { data::DataLoader(examples(3), options); });
  };
  CHECK(message({.batch_size = 0})
            .starts_with("DataLoader: batch_size should be a positive integer value, but got batch_size=0"));
  CHECK(message({.num_workers = -1}).starts_with("DataLoader: num_workers should be at least 0"));
  CHECK(message({.prefetch_factor = 0}).starts_with("DataLoader: prefetch_factor should be at least 1"));
  CHECK(message({.timeout = std::chrono::milliseconds(-1)}).starts_with("DataLoader: timeout should be at least 0"));
  CHECK(message({.shuffle = true, .sampler = std::make_shared<data::SequentialSampler>(3)})
            .starts_with("DataLoader: sampler option is mutually exclusive with shuffle"));
  CHECK(message({.batch_size = 0}).find("data_loader_test.cpp:") != std::string::npos);
  CHECK_THROWS_AS(data::DataLoader(std::shared_ptr<Augmented>()), ValueError);
}

TEST_CASE("a sampler for a larger dataset is found before the first batch") {
  data::DataLoader loader(examples(3), {.sampler = std::make_shared<data::SequentialSampler>(4)});
  CHECK_THROWS_AS(loader.begin(), IndexError);
  CHECK(error_of([&] { loader.begin(); }).find("gives index 3, but the dataset has 3 examples") != std::string::npos);
}

}  // namespace brigade::test::data_loader_test
