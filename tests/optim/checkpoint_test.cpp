#include <brigade/autograd/functional.h>
#include <brigade/core/safetensors.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <core/error_of.h>
#include <core/temporary_folder.h>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>

namespace brigade::test::checkpoint_test {

using test::error_of;
using test::read_bytes;
using test::TemporaryFolder;
using test::write_bytes;

struct NetImpl : nn::Module {
  nn::Linear fc1{nullptr}, fc2{nullptr};
  nn::BatchNorm1d norm{nullptr};
  nn::Dropout dropout{nullptr};
  explicit NetImpl(int64_t width = 5) {
    fc1 = register_module("fc1", nn::Linear(3, width));
    norm = register_module("norm", nn::BatchNorm1d(width));
    dropout = register_module("dropout", nn::Dropout(0.4));
    fc2 = register_module("fc2", nn::Linear(width, 2));
  }
  Tensor forward(const Tensor& x) { return fc2(dropout(gelu(norm(fc1(x))))); }
};
BRIGADE_MODULE(Net);

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const nn::Module&)>;

template <class O>
MakeOptimizer make(std::remove_cvref_t<decltype(std::declval<O&>().options())> options) {
  return [options](const nn::Module& net) { return std::make_unique<O>(net.parameters(), options); };
}

// A training job with all its state: weights, running statistics, moments, the random number stream, counters.
struct Job {
  Net net;
  std::unique_ptr<optim::Optimizer> optimizer;
  int64_t step = 0;
  double best = INFINITY;
  optim::Checkpoint checkpoint;

  Job(uint64_t seed, const MakeOptimizer& make_optimizer)
      : net((manual_seed(seed), Net())), optimizer(make_optimizer(*net)) {
    checkpoint.module("model", *net)
        .optimizer("optimizer", *optimizer)
        .generator("random", default_generator())
        .number("step", step)
        .number("best", best);
  }
  std::vector<double> train(int steps) {
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i, ++step) {
      optimizer->zero_grad();
      const Tensor x = randn({8, 3});
      const Tensor loss = mse_loss(net(x), x.slice(1, 0, 2));
      loss.backward();
      optimizer->step();
      losses.push_back(loss.item());
      best = std::min(best, losses.back());
    }
    return losses;
  }
};

bool same_bits(const nn::Named<Tensor>& a, const nn::Named<Tensor>& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) {
    same = a[i].first == b[i].first && a[i].second.nbytes() == b[i].second.nbytes() &&
           std::memcmp(a[i].second.raw_data(), b[i].second.raw_data(), a[i].second.nbytes()) == 0;
  }
  return same;
}

const MakeOptimizer kAdam = make<optim::AdamW>({.lr = 0.01, .weight_decay = 0.02});

TEST_CASE("a job that was saved and loaded goes on bit for bit, whatever the optimizer") {
  const TemporaryFolder folder;
  const std::vector<std::pair<const char*, MakeOptimizer>> optimizers = {
      {"SGD", make<optim::SGD>({.lr = 0.05, .momentum = 0.9, .nesterov = true})},
      {"Adam", make<optim::Adam>({.lr = 0.01, .amsgrad = true})},
      {"AdamW", kAdam},
      {"RMSprop", make<optim::RMSprop>({.lr = 0.01, .momentum = 0.5, .centered = true})},
      {"Adagrad", make<optim::Adagrad>({})},
      {"Adadelta", make<optim::Adadelta>({})},
      {"Lion", make<optim::Lion>({})},
      {"RAdam", make<optim::RAdam>({})},
      {"NAdam", make<optim::NAdam>({})}};
  for (const auto& [name, make_optimizer] : optimizers) {
    CAPTURE(name);
    const std::string path = folder / "job";
    Job job(1, make_optimizer);
    job.train(7);
    job.checkpoint.save(path);
    const std::vector<double> expected = job.train(6);
    const uint64_t offset = default_generator().offset();

    Job resumed(99, make_optimizer);
    resumed.train(2);  // load() must replace its state
    resumed.checkpoint.load(path);
    CHECK(resumed.step == 7);
    CHECK(resumed.train(6) == expected);
    CHECK(resumed.step == 13);
    CHECK(resumed.best == job.best);
    CHECK(default_generator().seed() == 1);
    CHECK(default_generator().offset() == offset);
    CHECK(same_bits(resumed.net->state_dict(), job.net->state_dict()));
    const optim::OptimizerState a = job.optimizer->state_dict();
    const optim::OptimizerState b = resumed.optimizer->state_dict();
    CHECK(same_bits(a.tensors, b.tensors));
    CHECK(a.numbers == b.numbers);
  }
}

TEST_CASE("a program that has the model alone reads it from the checkpoint of a training") {
  const TemporaryFolder folder;
  const std::string path = folder / "job";
  Job job(1, kAdam);
  job.train(3);
  job.checkpoint.save(path);
  Net net;
  optim::Checkpoint model;
  model.module("model", *net);
  CHECK_THROWS_AS(model.load(path), ValueError);
  CHECK_FALSE(same_bits(net->state_dict(), job.net->state_dict()));
  model.load(path, {.strict = false});
  CHECK(same_bits(net->state_dict(), job.net->state_dict()));
  // A named entry must exist in the file.
  double missing = 0;
  optim::Checkpoint more;
  more.module("model", *net).number("missing", missing);
  CHECK(error_of([&] { more.load(path, {.strict = false}); }).find("missing number \"missing\"") != std::string::npos);
}

TEST_CASE("a checkpoint is a safetensors file that says what it holds") {
  const TemporaryFolder folder;
  Job job(1, kAdam);
  job.train(1);
  job.checkpoint.save(folder / "job");
  const SafetensorsFile file(folder / "job");
  CHECK(file.metadata().at("brigade/checkpoint") == "2");
  CHECK(file.has_checksums());
  CHECK(file.metadata().at("model") == "module Net");
  CHECK(file.metadata().at("optimizer") == "optimizer AdamW");
  CHECK(file.metadata().at("optimizer/group0.lr") == "0.01");
  CHECK(file.metadata().at("optimizer/0.step") == "1");
  CHECK(file.metadata().at("random/seed") == "1");
  CHECK(file.metadata().at("step/value") == "1");
  CHECK(file.tensor("model/fc1.weight").sizes() == Shape{5, 3});
  CHECK(file.tensor("optimizer/0.exp_avg").sizes() == Shape{5, 3});
}

TEST_CASE("numbers come back with all their bits, and any part with its tensors") {
  const TemporaryFolder folder;
  int64_t integers[] = {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  double numbers[] = {0.1, -0.0, 5e-324, -1.7976931348623157e308, INFINITY, std::nan("")};
  RandomGenerator generator(~uint64_t{0});
  generator.set_offset(~uint64_t{0} - 1);
  optim::OptimizerState state{"schedule", {{"t", tensor<float>({1, 2})}}, {{"x", 1.0 / 3}}};
  optim::Checkpoint checkpoint;
  checkpoint.generator("g", generator);
  checkpoint.part(
      "custom", [&] { return state; }, [&](const optim::OptimizerState& given) { state = given; });
  for (int i = 0; i < 2; ++i)
    checkpoint.number("i" + std::to_string(i), integers[i]);
  for (int i = 0; i < 6; ++i)
    checkpoint.number("n" + std::to_string(i), numbers[i]);
  checkpoint.save(folder / "f");
  const int64_t integers_before[] = {integers[0], integers[1]};
  double numbers_before[6];
  std::memcpy(numbers_before, numbers, sizeof numbers);
  integers[0] = integers[1] = 0;
  for (double& number : numbers)
    number = 7;
  generator.manual_seed(3);
  state = {};
  checkpoint.load(folder / "f");
  CHECK(std::memcmp(integers, integers_before, sizeof integers) == 0);
  CHECK(std::memcmp(numbers, numbers_before, 5 * sizeof(double)) == 0);
  CHECK(std::isnan(numbers[5]));
  CHECK(generator.seed() == ~uint64_t{0});
  CHECK(generator.offset() == ~uint64_t{0} - 1);
  CHECK(state.optimizer == "schedule");
  CHECK(state.numbers == std::vector<std::pair<std::string, double>>{{"x", 1.0 / 3}});
  REQUIRE(state.tensors.size() == 1);
  CHECK(state.tensors[0].first == "t");
  CHECK(state.tensors[0].second.to_vector<float>() == std::vector<float>{1, 2});
}

TEST_CASE("names of parts are checked") {
  optim::Checkpoint checkpoint;
  int64_t number = 0;
  checkpoint.number("step", number);
  CHECK_THROWS_AS(checkpoint.number("step", number), ValueError);
  CHECK(error_of([&] { checkpoint.number("step", number); }) ==
        "Checkpoint: two parts are called \"step\"; expected each name once");
  for (const char* name : {"", "a/b", "brigade"}) {
    CHECK(error_of([&] { checkpoint.number(name, number); }) ==
          std::string("Checkpoint: a part cannot be called \"") + name +
              "\"; expected a name without '/' other than \"brigade\"");
  }
}

TEST_CASE("what does not fit is named, and then nothing has been changed") {
  const TemporaryFolder folder;
  const std::string path = folder / "job";
  Job saved(1, kAdam);
  saved.train(2);
  saved.checkpoint.save(path);

  Net other(4);
  Net other64;
  other64->to(kFloat64);
  Job job(5, kAdam);
  job.train(3);
  optim::SGD sgd(job.net->parameters(), {.lr = 0.1});
  optim::AdamW fewer({job.net->parameters()[0]}, {});
  const nn::Named<Tensor> live = job.net->state_dict();
  nn::Named<Tensor> before;
  for (const auto& [name, tensor] : live)
    before.emplace_back(name, tensor.clone());
  const optim::OptimizerState adam_before = job.optimizer->state_dict();
  int64_t step = 42;
  double best = 17;
  RandomGenerator generator(8);
  const auto message = [&](nn::Module& module, optim::Optimizer& optimizer) {
    optim::Checkpoint checkpoint;
    checkpoint.number("step", step).number("best", best).generator("random", generator);
    checkpoint.module("model", module).optimizer("optimizer", optimizer);
    CHECK_THROWS_AS(checkpoint.load(path), ValueError);
    const std::string text = error_of([&] { checkpoint.load(path); });
    CHECK(step == 42);
    CHECK(best == 17);
    CHECK(generator.seed() == 8);
    CHECK(same_bits(job.net->state_dict(), before));
    return text;
  };
  CHECK(message(*other, *job.optimizer) ==
        path +
            ": module \"model\" does not fit this Net; build the model as it was when it was saved:\n\t\"fc1.weight\" "
            "is float32 [5, 3], expected float32 [4, 3]\n\t\"fc1.bias\" is float32 [5], expected float32 "
            "[4]\n\t\"norm.weight\" is float32 [5], expected float32 [4]\n\t\"norm.bias\" is float32 [5], expected "
            "float32 [4]\n\t\"norm.running_mean\" is float32 [5], expected float32 [4]\n\t\"norm.running_var\" is "
            "float32 [5], expected float32 [4]\n\t\"fc2.weight\" is float32 [2, 5], expected float32 [2, 4]");
  CHECK(message(*other64, *job.optimizer).find("\n\t\"fc1.weight\" is float32 [5, 3], expected float64 [5, 3]\n") !=
        std::string::npos);
  const std::string foreign = message(*job.net->fc2.ptr(), *job.optimizer);
  CHECK(foreign.find(": module \"model\" does not fit this Linear; build the model as it was when it was "
                     "saved:\n\tmissing \"weight\": expected float32 [2, 5]\n\tmissing \"bias\": expected float32 "
                     "[2]\n\tunexpected \"") != std::string::npos);
  CHECK(foreign.substr(foreign.size() - 5) == "\n\t...");
  CHECK(message(*job.net, sgd) == path + ": part \"optimizer\": optimizer state: it was saved from AdamW, this is SGD");
  CHECK(message(*job.net, fewer) ==
        path +
            ": part \"optimizer\": loaded state dict contains a parameter group that doesn't match the size of "
            "optimizer's group: group 0 was saved with 6 parameters, this one has 1");
  CHECK(same_bits(job.optimizer->state_dict().tensors, adam_before.tensors));

  optim::Checkpoint parts;
  parts.module("optimizer", *job.net).number("epoch", step).number("step", best);
  CHECK_THROWS_AS(parts.load(path), ValueError);
  CHECK(error_of([&] { parts.load(path); }) ==
        path +
            " was saved from other parts (load(path, {.strict = false}) leaves unread what is "
            "not named):\n\t\"optimizer\" is of kind "
            "\"optimizer\", expected module\n\tmissing integer "
            "\"epoch\"\n\t\"step\" is of kind \"integer\", expected "
            "number\n\tunexpected part \"best\" of kind "
            "\"number\"\n\tunexpected part \"model\" of kind "
            "\"module\"\n\tunexpected part \"random\" of kind \"generator\"");
}

TEST_CASE("when a later part does not fit, the parts that were loaded before it are put back") {
  const TemporaryFolder folder;
  const std::string path = folder / "job";
  Job job(1, kAdam);
  job.train(2);
  optim::OptimizerState schedule{"", {{"t", tensor<float>({1})}}, {{"x", 1}}};
  bool refuse = false;
  job.checkpoint.part(
      "a", [&] { return schedule; }, [&](const optim::OptimizerState& given) { schedule = given; });
  job.checkpoint.part(
      "b", [] { return optim::OptimizerState(); },
      [&](const optim::OptimizerState&) {
        if (refuse) throw ValueError("no");
      });
  job.checkpoint.save(path);
  job.train(3);
  schedule = {"", {{"t", tensor<float>({2})}}, {{"x", 2}}};
  std::vector<std::pair<std::string, Tensor>> moments;
  for (const auto& [name, tensor] : job.optimizer->state_dict().tensors)
    moments.emplace_back(name, tensor.clone());
  const auto numbers = job.optimizer->state_dict().numbers;
  refuse = true;
  CHECK(error_of([&] { job.checkpoint.load(path); }) == path + ": part \"b\": no");
  CHECK(same_bits(job.optimizer->state_dict().tensors, moments));
  CHECK(job.optimizer->state_dict().numbers == numbers);
  CHECK(schedule.numbers[0].second == 2);
  CHECK(schedule.tensors[0].second.to_vector<float>() == std::vector<float>{2});
  CHECK(job.step == 5);
  refuse = false;
  job.checkpoint.load(path);
  CHECK(job.step == 2);
  CHECK(schedule.numbers[0].second == 1);
}

TEST_CASE("a damaged checkpoint is named with the entry") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  int64_t step = 3;
  double rate = 4;
  RandomGenerator generator(8);
  optim::Checkpoint checkpoint;
  checkpoint.number("step", step).number("rate", rate).generator("random", generator);
  const auto message = [&](const SafetensorsMetadata& metadata, const nn::Named<Tensor>& tensors = {}) {
    save_safetensors(path, tensors, metadata);
    CHECK_THROWS_AS(checkpoint.load(path), IoError);
    const std::string text = error_of([&] { checkpoint.load(path); });
    CHECK(step == 3);
    CHECK(rate == 4);
    CHECK(generator.seed() == 8);
    REQUIRE(text.starts_with(path + ": "));
    return text.substr(path.size() + 2);
  };
  const auto changed = [](const std::string& key, const std::string& value) {
    SafetensorsMetadata metadata = {{"brigade/checkpoint", "1"}, {"random", "generator"}, {"random/seed", "1"},
                                    {"random/offset", "2"},      {"step", "integer"},     {"step/value", "1"},
                                    {"rate", "number"},          {"rate/value", "0.5"}};
    if (value.empty()) {
      metadata.erase(key);
    } else {
      metadata[key] = value;
    }
    return metadata;
  };
  CHECK(message({}) == "the metadata has no \"brigade/checkpoint\"; expected a file that Checkpoint::save wrote");
  CHECK(message(changed("brigade/checkpoint", "3")) ==
        "\"brigade/checkpoint\" is \"3\"; expected \"1\" or \"2\", the versions that this program knows");
  CHECK(message(changed("brigade/checkpoint", "2")) ==
        "the metadata holds no checksums; expected them in a file that Checkpoint::save wrote");
  CHECK(message(changed("step/value", "1.5")) ==
        "number \"step/value\" is \"1.5\"; expected a whole number of 64 bits");
  CHECK(message(changed("step/value", "9223372036854775808")) ==
        "number \"step/value\" is \"9223372036854775808\"; expected a whole number of 64 bits");
  CHECK(message(changed("rate/value", "0,5")) == "number \"rate/value\" is \"0,5\"; expected a number");
  CHECK(message(changed("random/seed", "-1")) ==
        "number \"random/seed\" is \"-1\"; expected a whole number of 64 bits");
  CHECK(message(changed("random/seed", "")) ==
        "generator \"random\" holds 0 tensors and 1 numbers; expected 2 numbers alone");
  CHECK(message(changed("step/other", "1")) ==
        "integer \"step\" holds 0 tensors and 2 numbers; expected 1 numbers alone");
  CHECK(message(changed("rate/value", ""), {{"rate/value", scalar_tensor<double>(1.0)}}) ==
        "number \"rate\" holds 1 tensors and 0 numbers; expected 1 numbers alone");
  SafetensorsMetadata renamed = changed("rate/value", "");
  renamed["rate/size"] = "1";
  CHECK(message(renamed) == "number \"rate/value\" is missing; expected it in the metadata");
  CHECK(message(changed("epoch/value", "1")) ==
        "number \"epoch/value\" belongs to no part; expected \"<part>/<name>\" of a part that the metadata names");
  CHECK(message(changed("", ""), {{"w", scalar_tensor<double>(1.0)}}) ==
        "tensor \"w\" belongs to no part; expected \"<part>/<name>\" of a part that the metadata names");
  save_safetensors(path, {}, changed("", ""));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  CHECK_THROWS_AS(checkpoint.load(path), IoError);
}

TEST_CASE("a checkpoint of which any bit has changed is refused, and nothing has been changed") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  nn::Linear linear(2, 1);
  int64_t step = 3;
  RandomGenerator generator(8);
  optim::Checkpoint checkpoint;
  checkpoint.module("model", *linear.ptr()).number("step", step).generator("random", generator);
  checkpoint.save(path);
  const std::string whole = read_bytes(path);
  step = 4;
  const std::vector<float> weight = linear->weight.to_vector<float>();
  int accepted = 0;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_bytes(path, damaged);
    accepted += error_of([&] { checkpoint.load(path); }) == "no error";
  }
  CHECK(accepted == 0);
  CHECK(step == 4);
  CHECK(linear->weight.to_vector<float>() == weight);
  write_bytes(path, whole);
  checkpoint.load(path);
  CHECK(step == 3);
}

TEST_CASE("wherever the disk refuses, the save fails and the old checkpoint stands") {
  const TemporaryFolder folder;
  const std::string path = folder / "job";
  Job job(1, kAdam);
  job.checkpoint.save(path);
  const std::string before = read_bytes(path);
  job.step = 77;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    bool right = true;
    for (size_t bytes = 0; bytes < before.size(); bytes += 97) {
      const rlimit limit{bytes, RLIM_INFINITY};
      right = right && ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
      const std::string text = error_of([&] { job.checkpoint.save(path); });
      right = right && text.find("cannot write " + path) == 0 && text.find("File too large") != std::string::npos &&
              read_bytes(path) == before && folder.names() == std::vector<std::string>{"job"};
    }
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(read_bytes(path) == before);
}

TEST_CASE("a process killed while it saves, many times, leaves the last checkpoint that was completed or the next") {
  const TemporaryFolder folder;
  const std::string path = folder / "job";
  constexpr int kKills = 40;
  // Every element of the module, and the counter, hold the number of the save.
  struct State {
    nn::Linear linear{64, 64};
    int64_t step = 0;
    optim::Checkpoint checkpoint;
    State() { checkpoint.module("model", *linear.ptr()).number("step", step); }
    void set(int64_t to) {
      step = to;
      for (const auto& [name, tensor] : linear->state_dict())
        std::fill_n(tensor.data_ptr<float>(), tensor.numel(), static_cast<float>(to));
    }
  };
  State state;
  state.checkpoint.save(path);
  int64_t last = 0;
  int advanced = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    int completed[2];
    REQUIRE(::pipe(completed) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (int64_t step = last + 1;; ++step) {
        state.set(step);
        state.checkpoint.save(path);
        if (::write(completed[1], &step, sizeof step) != sizeof step) ::_exit(1);
      }
    }
    ::close(completed[1]);
    // Kill the child after its first save, at a different moment each time.
    int64_t seen = 0;
    REQUIRE(::read(completed[0], &seen, sizeof seen) == sizeof seen);
    std::this_thread::sleep_for(std::chrono::microseconds(137 * kill % 4000));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    for (int64_t next = 0; ::read(completed[0], &next, sizeof next) == sizeof next;)
      seen = next;
    ::close(completed[0]);
    State loaded;
    loaded.checkpoint.load(path);
    CHECK((loaded.step == seen || loaded.step == seen + 1));
    for (const auto& [name, tensor] : loaded.linear->state_dict()) {
      const std::vector<float> values = tensor.to_vector<float>();
      CHECK(std::all_of(values.begin(), values.end(),
                        [&](float value) { return value == static_cast<float>(loaded.step); }));
    }
    advanced += loaded.step > last;
    last = loaded.step;
  }
  CHECK(advanced == kKills);
}

}  // namespace brigade::test::checkpoint_test
