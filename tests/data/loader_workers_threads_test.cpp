// Workers: the same batches as without them, errors at their turn, and threads that end.
#include <brigade/core/warning.h>
#include <brigade/data/data_loader.h>
#include <brigade/kernels/factory.h>

#include <core/error_of.h>
#include <data/datasets.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

namespace brigade::test::loader_workers_threads_test {
using namespace std::chrono_literals;
using test::Augmented;
using test::Broken;
using test::error_of;
using test::pass_of;

namespace {

// Records the threads that call get(), and blocks them at example `closed_at` until the gate is opened.
struct Watched : Augmented {
  using Augmented::Augmented;
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  mutable std::set<std::thread::id> threads;
  mutable int asked = 0, taken = 0, most_ahead = 0;
  int64_t closed_at = -1;
  bool open = false;

  data::Example get(int64_t index) const override {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    most_ahead = std::max(most_ahead, ++asked - taken);
    changed.notify_all();
    if (index == closed_at) changed.wait(lock, [&] { return open; });
    return Augmented::get(index);
  }
  bool wait_until_asked(int times, std::chrono::milliseconds limit = 60s) const {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, limit, [&] { return asked >= times; });
  }
  void note_taken() const {
    const std::lock_guard lock(mutex);
    ++taken;
  }
  void open_gate() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

}  // namespace

TEST_CASE("order and values are the same for any number of workers") {
  data::DataLoader alone(std::make_shared<Augmented>(97), {.batch_size = 4, .shuffle = true, .seed = 5});
  const test::Seen first = pass_of(alone), second = pass_of(alone);
  CHECK(first.indices.size() == 25);
  for (const int workers : {1, 2, 5, 40}) {
    for (const int ahead : {1, 3}) {
      CAPTURE(workers);
      CAPTURE(ahead);
      data::DataLoader loader(
          std::make_shared<Augmented>(97),
          {.batch_size = 4, .shuffle = true, .seed = 5, .num_workers = workers, .prefetch_factor = ahead});
      CHECK(pass_of(loader) == first);
      CHECK(pass_of(loader) == second);
    }
  }
}

TEST_CASE("workers make the batches, and not more of them ahead than they may") {
  const auto dataset = std::make_shared<Watched>(100);
  data::DataLoader loader(dataset, {.batch_size = 1, .num_workers = 2, .prefetch_factor = 3});
  auto batch = loader.begin();
  // The first batch was taken, and the workers make six more ahead.
  dataset->note_taken();
  REQUIRE(dataset->wait_until_asked(7));
  CHECK(!dataset->wait_until_asked(8, 50ms));  // gives a mistake time to show
  for (; batch != loader.end(); ++batch)
    dataset->note_taken();
  // Six, and the batch that the loader has handed out but this test has not noted yet.
  CHECK(dataset->most_ahead <= 7);
  CHECK(dataset->asked == 100);
  CHECK(!dataset->threads.contains(std::this_thread::get_id()));
  CHECK(dataset->threads.size() <= 2);
}

TEST_CASE("an error comes at the turn of its batch, names the example and holds the original one") {
  for (const int workers : {0, 1, 3}) {
    CAPTURE(workers);
    data::DataLoader loader(std::make_shared<Broken>(20, std::vector<int64_t>{9, 17}),
                            {.batch_size = 4, .num_workers = workers});
    test::Seen seen;
    bool caught = false;
    try {
      for (const data::Example& batch : loader)
        seen.add(batch);
    } catch (const data::DataLoaderError& error) {
      caught = true;
      CHECK(std::string(error.what()) == "DataLoader: example 9 (batch 2 of epoch 0): no picture 9");
      CHECK(error.indices() == std::vector<int64_t>{9});
      CHECK(error.batch() == 2);
      CHECK(error.epoch() == 0);
      CHECK_THROWS_AS(std::rethrow_if_nested(error), std::out_of_range);
    }
    CHECK(caught);
    CHECK(seen.indices == std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}});
    CHECK(loader.state_dict().numbers[1].second == 2);  // where a fixed program resumes
  }
}

TEST_CASE("after an error the pass has ended") {
  data::DataLoader loader(std::make_shared<Broken>(3, std::vector<int64_t>{1}), {.num_workers = 1});
  auto batch = loader.begin();
  CHECK_THROWS_AS(++batch, data::DataLoaderError);
  ++batch;
  CHECK(batch == loader.end());
}

TEST_CASE("a collate that throws is named with the batch, also where what it throws is no std::exception") {
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    data::DataLoader loader(std::make_shared<Augmented>(12), {.batch_size = 6, .num_workers = workers},
                            [](const std::vector<data::Example>&) -> int { throw 7; });
    CHECK(error_of([&] { loader.begin(); }) ==
          "DataLoader: the collate of batch 0 of epoch 0 (examples 0, 1, 2, 3, 4, ...): an exception that is no "
          "std::exception");
  }
}

TEST_CASE("examples of different shapes are named by the loader's default collate") {
  struct Growing : data::Dataset<Tensor> {
    int64_t size() const override { return 4; }
    Tensor get(int64_t index) const override { return ones({index}); }
  };
  data::DataLoader loader(std::make_shared<Growing>(), {.batch_size = 2, .num_workers = 1});
  CHECK(error_of([&] { loader.begin(); })
            .starts_with("DataLoader: the collate of batch 0 of epoch 0 (examples 0, 1): default_collate: the tensor "
                         "of example 1 of the batch is float32 [1], of the first float32 [0]"));
}

TEST_CASE("who stops early gets its threads back, wherever the workers are") {
  for (int round = 0; round < 20; ++round) {
    const auto dataset = std::make_shared<Watched>(50);
    {
      data::DataLoader loader(dataset, {.batch_size = 2, .num_workers = 3});
      int taken = 0;
      for (const data::Example& batch : loader) {
        CHECK(batch.data.numel() == 2);
        if (++taken > round) break;
      }
    }
    // The loop has ended the workers: nothing else holds the dataset.
    CHECK(dataset.use_count() == 1);
  }
}

TEST_CASE("a worker that does not come back is a TimeoutError that names the example, and is left behind") {
  std::vector<std::string> told;
  const auto before = set_warning_handler([&](const Warning& warning) { told.push_back(warning.message); });
  const auto dataset = std::make_shared<Watched>(10);
  dataset->closed_at = 3;
  data::DataLoader loader(dataset, {.batch_size = 2, .num_workers = 1, .timeout = 50ms});
  std::string message;
  try {
    pass_of(loader);
  } catch (const TimeoutError& error) {
    message = error.what();
  }
  CHECK(message.starts_with("DataLoader: example 3 (batch 1 of epoch 0) has taken longer than 50 ms on a worker"));
  REQUIRE(told.size() == 1);
  CHECK(told[0].starts_with("DataLoader: a worker is still at example 3 (batch 1 of epoch 0), 50 ms after"));
  set_warning_handler(before);
  // The worker ends when it can, and releases the dataset.
  dataset->open_gate();
  const auto latest = std::chrono::steady_clock::now() + 60s;
  while (dataset.use_count() > 2 && std::chrono::steady_clock::now() < latest)  // the loader's and this one
    std::this_thread::yield();
  CHECK(dataset.use_count() == 2);
}

TEST_CASE("iterators may outlive their loader") {
  auto loader =
      std::make_unique<data::DataLoader<>>(std::make_shared<Augmented>(5), data::DataLoaderOptions{.num_workers = 2});
  auto batch = loader->begin();
  loader.reset();
  int count = 0;
  for (; batch != data::DataLoader<>::Iterator(); ++batch)
    ++count;
  CHECK(count == 5);
}

}  // namespace brigade::test::loader_workers_threads_test
