// Saving and loading the position in the data: training resumes in the middle of an epoch, bit for bit.
#include <brigade/autograd/functional.h>
#include <brigade/data/data_loader.h>
#include <brigade/data/dataset.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <core/error_of.h>
#include <core/temporary_folder.h>
#include <data/datasets.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::resume_test {
using test::Augmented;
using test::error_of;
using test::pass_of;

namespace {

// Trains until `last_step` steps have been taken in all, saves after `save_at`, and gives the losses.
std::vector<double> train(int workers, int last_step, const std::string& save_to, int save_at,
                          const std::string& resume_from) {
  RandomGenerator random(3);
  const Tensor x = randn({46, 3}, kFloat32, &random);
  const auto dataset = std::make_shared<data::TensorDataset>(x, x.slice(1, 0, 2).contiguous());
  data::DataLoader loader(dataset, {.batch_size = 5, .shuffle = true, .seed = 2, .num_workers = workers});
  manual_seed(1);
  nn::Sequential net(nn::Linear(3, 8), nn::Dropout(0.2), nn::Linear(8, 2));
  optim::Adam adam(net->parameters(), {.lr = 1e-2});
  int64_t step = 0;
  optim::Checkpoint checkpoint;
  checkpoint.module("model", *net).optimizer("adam", adam).generator("random", default_generator());
  checkpoint.number("step", step);
  checkpoint.part(
      "data", [&] { return loader.state_dict(); }, [&](const auto& state) { loader.load_state_dict(state); });
  if (!resume_from.empty()) checkpoint.load(resume_from);
  std::vector<double> losses;
  for (uint64_t epoch = loader.epoch(); step < last_step; ++epoch) {
    loader.set_epoch(epoch);
    for (const data::Example& batch : loader) {
      adam.zero_grad();
      const Tensor loss = mse_loss(net(batch.data), batch.target);
      loss.backward();
      adam.step();
      losses.push_back(loss.item());
      ++step;
      if (step == save_at && !save_to.empty()) checkpoint.save(save_to);
      if (step == last_step) break;
    }
  }
  return losses;
}

}  // namespace

TEST_CASE("a training that is resumed in the middle of an epoch has the same losses, bit for bit") {
  const test::TemporaryFolder folder;
  const std::vector<double> whole = train(0, 30, "", 0, "");
  REQUIRE(whole.size() == 30);
  // An epoch has ten batches: saves in its middle, at its last batch, and at its first.
  for (const int at : {4, 10, 11, 17, 20}) {
    CAPTURE(at);
    const std::string file = folder / std::to_string(at);
    CHECK(train(2, at, file, at, "") == std::vector<double>(whole.begin(), whole.begin() + at));
    CHECK(train(3, 30, "", 0, file) == std::vector<double>(whole.begin() + at, whole.end()));
  }
}

TEST_CASE("a state says how many batches were taken, the one in hand included") {
  data::DataLoader loader(std::make_shared<Augmented>(6), {.batch_size = 2});
  const auto place = [&] {
    const auto numbers = loader.state_dict().numbers;
    return std::pair(numbers[0].second, numbers[1].second);
  };
  CHECK(place() == std::pair(0.0, 0.0));
  auto batch = loader.begin();
  CHECK(place() == std::pair(0.0, 1.0));
  ++batch;
  ++batch;
  CHECK(place() == std::pair(0.0, 3.0));
  ++batch;
  CHECK(place() == std::pair(1.0, 0.0));
  loader.set_epoch(4);
  CHECK(place() == std::pair(4.0, 0.0));
}

TEST_CASE("a loaded position holds for its epoch only, and once") {
  const data::DataLoaderOptions options{.batch_size = 2, .shuffle = true};
  data::DataLoader first(std::make_shared<Augmented>(8), options);
  first.set_epoch(3);
  const test::Seen third = pass_of(first);
  first.set_epoch(3);
  auto batch = first.begin();
  ++batch;
  const optim::OptimizerState state = first.state_dict();

  data::DataLoader second(std::make_shared<Augmented>(8), options);
  second.load_state_dict(state);
  CHECK(second.epoch() == 3);
  second.set_epoch(3);
  CHECK(pass_of(second).indices == std::vector<std::vector<int64_t>>{third.indices[2], third.indices[3]});
  second.set_epoch(3);
  CHECK(pass_of(second) == third);
  second.load_state_dict(state);
  second.set_epoch(2);
  CHECK(pass_of(second).indices.size() == 4);
}

TEST_CASE("a state of another job is refused, and changes nothing") {
  data::DataLoader saved(std::make_shared<Augmented>(8), {.batch_size = 2, .shuffle = true, .seed = 1});
  saved.set_epoch(5);
  auto batch = saved.begin();
  const optim::OptimizerState state = saved.state_dict();
  const auto refused = [&](int64_t count, data::DataLoaderOptions options) {
    data::DataLoader loader(std::make_shared<Augmented>(count), std::move(options));
    loader.set_epoch(1);
    const std::string message = error_of([&] { loader.load_state_dict(state); });
    CHECK(loader.epoch() == (message == "no error" ? 5 : 1));
    return message;
  };
  CHECK(refused(8, {.batch_size = 2, .shuffle = true, .seed = 1}) == "no error");
  CHECK(refused(8, {.batch_size = 4, .shuffle = true, .seed = 1})
            .starts_with("DataLoader: the state was saved with 2 examples in a step of all ranks, and here are 4"));
  constexpr const char* kOrder = "DataLoader: the state belongs to another order of the examples";
  CHECK(refused(8, {.batch_size = 2, .shuffle = true, .seed = 2}).starts_with(kOrder));
  CHECK(refused(9, {.batch_size = 2, .shuffle = true, .seed = 1}).starts_with(kOrder));
  CHECK(refused(8, {.batch_size = 2}).starts_with(kOrder));
}

TEST_CASE("a state that no loader has saved is refused by name") {
  data::DataLoader loader(std::make_shared<Augmented>(8), {.batch_size = 2});
  const optim::OptimizerState good = loader.state_dict();
  const auto message = [&](const auto& change) {
    optim::OptimizerState state = good;
    change(state);
    return error_of([&] { loader.load_state_dict(state); });
  };
  CHECK(message([](auto&) {}) == "no error");
  CHECK(message([](auto& state) {
          state.numbers.erase(state.numbers.begin());
        }).starts_with("DataLoader: the state has no number \"epoch\""));
  CHECK(message([](auto& state) {
          state.numbers[1].second = 1.5;
        }).starts_with("DataLoader: \"batches\" of the state is 1.5; expected a whole number"));
  CHECK(message([](auto& state) { state.numbers[1].second = -1; }).find("expected a whole number") !=
        std::string::npos);
  CHECK(message([](auto& state) { state.numbers[0].second = NAN; }).find("expected a whole number") !=
        std::string::npos);
  CHECK(message([](auto& state) {
          state.numbers.emplace_back("lr", 1);
        }).starts_with("DataLoader: the state holds \"lr\", which no DataLoader has saved"));
}

}  // namespace brigade::test::resume_test
