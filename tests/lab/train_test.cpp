#include <brigade/core/safetensors.h>
#include <brigade/lab/commands/train.h>
#include <brigade/lab/trace_file.h>

#include "program.h"

#include <near.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <unistd.h>

namespace brigade::test::train_test {

std::vector<double> curve(const std::string& backend, int ranks, const std::string& precision, int epochs = 3) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("brigade-curve-" + std::to_string(getpid()) + ".json")).string();
  const test::Outcome outcome =
      test::run_program("train digits --quiet --epochs " + std::to_string(epochs) + " --backend " + backend +
                        " --ranks " + std::to_string(ranks) + " --precision " + precision + " --json " + file);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  std::ifstream in(file);
  const nlohmann::json row = nlohmann::json::parse(in).at("results").at(0);
  CHECK(row.at("parameters_equal") == true);
  std::filesystem::remove(file);
  return row.at("loss").get<std::vector<double>>();
}

TEST_CASE("with the same global batch the loss curves of 1, 2 and 4 ranks agree on every backend") {
  for (const auto& [precision, bound] :
       std::vector<std::pair<std::string, double>>{{"32-true", 1e-5}, {"64-true", 1e-12}}) {
    const std::vector<double> reference = curve("shm", 1, precision);
    CHECK(reference.size() == 66);
    CHECK(reference.back() < 0.8 * reference.front());
    for (const std::string backend : {"shm", "gloo", "threads"}) {
      for (const int ranks : {1, 2, 4}) {
        const std::vector<double> losses = curve(backend, ranks, precision);
        REQUIRE(losses.size() == reference.size());
        double worst = 0;
        for (size_t i = 0; i < losses.size(); ++i)
          worst = test::worse(worst, std::abs(losses[i] - reference[i]) / std::abs(reference[i]));
        CAPTURE(backend);
        CAPTURE(ranks);
        CAPTURE(precision);
        CHECK(worst < bound);
      }
    }
  }
}

TEST_CASE("mixed precision reaches the loss of float32 over 500 steps, on 1 and 2 ranks, on every backend") {
  const auto last_epoch = [](const std::string& backend, int ranks, const std::string& precision) {
    const std::vector<double> losses = curve(backend, ranks, precision, 23);
    REQUIRE(losses.size() == 506);
    return std::accumulate(losses.end() - 22, losses.end(), 0.0) / 22;
  };
  const double reference = last_epoch("shm", 2, "32-true");
  CHECK(reference < 0.002);
  for (const std::string precision : {"16-mixed", "bf16-mixed"}) {
    CAPTURE(precision);
    CHECK(std::abs(last_epoch("shm", 1, precision) / reference - 1) < 0.15);
    for (const std::string backend : {"shm", "gloo", "threads"}) {
      CAPTURE(backend);
      CHECK(std::abs(last_epoch(backend, 2, precision) / reference - 1) < 0.15);
    }
  }
}

TEST_CASE("half precision throughout trains as well, and says what a scaler did") {
  for (const std::string precision : {"16-true", "bf16-true"}) {
    CAPTURE(precision);
    const std::vector<double> losses = curve("threads", 2, precision);
    CHECK(losses.back() < 0.5 * losses.front());
  }
  lab::TrainOptions options;
  options.precision = "16-mixed";
  options.epochs = 3;
  options.progress = false;
  const lab::TrainResult result = lab::run_recipe(lab::find_recipe("digits"), "threads", 2, options);
  // The initial scale is too large once or twice, and is halved each time.
  CHECK(result.metrics.at("skipped steps") >= 1);
  CHECK(result.metrics.at("loss scale") * std::exp2(result.metrics.at("skipped steps")) == 65536);
}

TEST_CASE(
    "a training that is resumed has the curve of one that was not, to the bit, scale and skipped steps included") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("brigade-digits-" + std::to_string(getpid()) + ".safetensors"))
          .string();
  const auto train = [](const lab::TrainOptions& options) {
    return lab::run_recipe(lab::find_recipe("digits"), "threads", 2, options);
  };
  for (const std::string precision : {"32-true", "16-mixed", "bf16-true"}) {
    CAPTURE(precision);
    lab::TrainOptions options{.precision = precision, .epochs = 4, .progress = false};
    const lab::TrainResult whole = train(options);
    options.epochs = 2;
    options.checkpoint = file;
    const lab::TrainResult first = train(options);
    options.epochs = 4;
    options.resume = file;
    const lab::TrainResult second = train(options);
    CHECK(first.from_epoch == 0);
    CHECK(second.from_epoch == 2);
    std::vector<double> losses = first.loss;
    losses.insert(losses.end(), second.loss.begin(), second.loss.end());
    CHECK(losses == whole.loss);
    CHECK(second.metrics.at("accuracy") == whole.metrics.at("accuracy"));
    if (precision == "16-mixed") {
      CHECK(whole.metrics.at("skipped steps") >= 1);
      CHECK(second.metrics.at("loss scale") == whole.metrics.at("loss scale"));
    }
    // The file is now that of the whole training; none of these runs can resume from it.
    const std::vector<std::pair<std::string, std::string>> refused{
        {" --epochs 4", "there is nothing left to do"},
        {" --epochs 5 --seed 2", "was written with --seed 1, and this is 2"},
        {" --epochs 5 --batch 32", "was written with --batch 64, and this is 32"},
        // A precision with the same parameter dtype, and one with another.
        {" --epochs 5 --precision bf16-mixed", precision == "16-mixed"  ? "unexpected part \"scaler\""
                                               : precision == "32-true" ? "written by a training in float32"
                                                                        : "bfloat16"},
        {" --epochs 5 --precision 64-true", precision == "16-mixed" ? "unexpected part \"scaler\"" : "float64"}};
    for (const auto& [more, text] : refused) {
      const test::Outcome wrong =
          test::run_program("train digits --quiet --resume " + file + more +
                            (more.find("--precision") == more.npos ? " --precision " + precision : ""));
      CAPTURE(wrong.output);
      CHECK(wrong.status == 2);
      CHECK(test::contains(wrong.output, text));
    }
  }
  // A dtype number that does not exist.
  Safetensors damaged = load_safetensors(file);
  REQUIRE(damaged.metadata.count("options/computed_in") == 1);
  damaged.metadata["options/computed_in"] = "99";
  save_safetensors(file, damaged.tensors, damaged.metadata, {.checksums = true});
  const test::Outcome none =
      test::run_program("train digits --quiet --precision bf16-true --epochs 5 --resume " + file);
  CAPTURE(none.output);
  CHECK(none.status == 2);
  CHECK(test::contains(none.output, "dtype number 99, which is none"));
  std::filesystem::remove(file);
  const test::Outcome missing = test::run_program("train digits --quiet --resume " + file);
  CHECK(missing.status == 3);
  CHECK(test::contains(missing.output, "cannot open " + file));
  CHECK(test::run_program("train digits --quiet --checkpoint /no-such-folder/file").status == 2);
}

TEST_CASE("the other strategy trains alike, and learns the digits") {
  for (const std::string strategy : {"ddp", "ddp_find_unused_parameters_true"}) {
    lab::TrainOptions options;
    options.strategy = strategy;
    options.progress = false;
    const lab::TrainResult result = lab::run_recipe(lab::find_recipe("digits"), "threads", 2, options);
    CHECK(result.metrics.at("accuracy") >= 0.97);
    CHECK(result.parameters_equal);
  }
}

TEST_CASE("the demo runs, learns, and shows both diagnoses") {
  const test::Outcome outcome = test::run_program("demo --quiet");
  CHECK_MESSAGE(outcome.status == 0, outcome.output);
  for (const char* part : {"identical, bit for bit", "aux.weight, aux.bias", "module `aux` was not called",
                           "lab/faults/unused/left_out.cpp:", "generator.weight, generator.bias",
                           "at lab/faults/unused/gan.cpp:", "cut the path from the loss", "ranks 0 and 1",
                           "the same steps with find_unused_parameters=true: no error"}) {
    CHECK_MESSAGE(test::contains(outcome.output, part), part);
  }
}

TEST_CASE(
    "a trace of the last steps is written, and explain reads it; a file that cannot be written is reported first") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("brigade-train-trace-" + std::to_string(getpid()) + ".json")).string();
  const test::Outcome outcome = test::run_program("train digits --quiet --epochs 1 --trace " + file);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  const lab::Trace trace = lab::read_trace("explain", file);
  int backwards = 0;
  int64_t first = 1000, last = 0;
  for (const lab::TraceSlice& slice : trace.slices) {
    if (slice.name != "backward") continue;
    ++backwards;
    const int64_t iteration = slice.arguments->at("iteration");
    first = std::min(first, iteration);
    last = std::max(last, iteration);
  }
  CHECK(backwards == 2 * 8);
  CHECK(first == 15);
  CHECK(last == 22);
  const test::Outcome words = test::run_program("explain " + file);
  CHECK(words.status == 0);
  CHECK(test::contains(words.output, "Iteration 22 on rank 0"));
  std::filesystem::remove(file);

  for (const std::string option : {"--trace", "--json"}) {
    const test::Outcome wrong = test::run_program("train digits --quiet " + option + " /no-such-folder/file.json");
    CHECK(wrong.status == 2);
    CHECK(test::contains(wrong.output, "cannot write /no-such-folder/file.json"));
  }
}

}  // namespace brigade::test::train_test
