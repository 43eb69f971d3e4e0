// Recipes resume from their checkpoints as if they had never been interrupted: anywhere in an epoch, in any form, and
// even after the program was killed.
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/lab/commands/train.h>
#include <brigade/lab/recipes/training.h>

#include "program.h"
#include "recipe_ranks.h"

#include <core/error_of.h>
#include <core/temporary_folder.h>
#include <test_part.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace brigade::test::recipes_resume_test {

using nlohmann::json;

// Warns in the fourth backward of a wrapper, the earliest at which slow_rank does: a training that is resumed later
// never gets there. Off by default, so the other tests of this program are not affected.
std::atomic<bool> machine_is_busy = false;
class LikeSlowRank final : public dist::Advice {
 public:
  std::optional<dist::Verdict> examine(dist::FinishedBackward& backward) override {
    const dist::Moment moment = backward.moment();
    if (!machine_is_busy || moment.iteration != 4) return std::nullopt;
    dist::Verdict verdict = dist::verdict_at(moment, "like_slow_rank", dist::Severity::Warning, dist::CauseKind::Slow);
    verdict.message = "a rank is slow, says this test";
    return verdict;
  }
};
const dist::AddAdvice add_like_slow_rank("like_slow_rank", [] { return std::make_unique<LikeSlowRank>(); });

// The lines of a metrics file without the times, which differ from run to run.
std::vector<json> metrics_in(const std::string& file) {
  std::ifstream in(file);
  std::vector<json> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(json::parse(line));
    lines.back().erase("ms");
  }
  return lines;
}

// The number of complete lines in a file that may still be written to.
int64_t lines_in(const std::string& file) {
  const std::string text = std::filesystem::exists(file) ? test::read_bytes(file) : "";
  return std::count(text.begin(), text.end(), '\n');
}

lab::TrainOptions short_setting(const lab::Recipe& recipe, int64_t steps) {
  lab::TrainOptions options = recipe.defaults;
  options.steps = steps;
  options.progress = false;
  return options;
}

// Trains the first `before` of `all` steps, resumes, and compares everything left behind with an uninterrupted
// training.
void check_resume(const lab::Recipe& recipe, lab::TrainOptions options, int64_t before, int64_t all) {
  const test::TemporaryFolder folder;
  options.steps = all;
  options.metrics = folder / "whole.jsonl";
  options.checkpoint = folder / "whole";
  const lab::TrainResult whole = lab::run_recipe(recipe, "threads", 2, options);
  options.metrics = folder / "parts.jsonl";
  options.checkpoint = folder / "parts";
  options.steps = before;
  const lab::TrainResult first = lab::run_recipe(recipe, "threads", 2, options);
  options.steps = all;
  options.resume = options.checkpoint;
  const lab::TrainResult second = lab::run_recipe(recipe, "threads", 2, options);
  std::vector<double> losses = first.loss;
  losses.insert(losses.end(), second.loss.begin(), second.loss.end());
  CHECK(losses == whole.loss);
  CHECK(second.metrics == whole.metrics);
  CHECK(second.sample == whole.sample);
  CHECK(metrics_in(folder / "parts.jsonl") == metrics_in(folder / "whole.jsonl"));
  // All state that a further training would resume from: moments, schedules, loss scale, position in the data.
  CHECK(test::read_bytes(folder / "parts") == test::read_bytes(folder / "whole"));
}

TEST_CASE("every right form of every recipe goes on bit for bit in the middle of an epoch") {
  const std::vector<const lab::Recipe*> recipes = lab::all_recipes();
  for (size_t index = 0; index < recipes.size(); ++index) {
    if (!test::is_of_this_part(index)) continue;
    const lab::Recipe* const recipe = recipes[index];
    for (const lab::Form& form : recipe->forms) {
      if (!form.is_right()) continue;
      CAPTURE(recipe->name);
      CAPTURE(form.name);
      lab::TrainOptions options = short_setting(*recipe, 0);
      options.form = form.name;
      if (recipe->takes_images) options.width = 4;
      check_resume(*recipe, options, 3, 5);
    }
  }
}

TEST_CASE("metrics do not depend on warnings of a slow rank, which come where a machine is busy") {
  const lab::Recipe& recipe = lab::find_recipe("resnet");
  lab::TrainOptions options = short_setting(recipe, 4);
  options.form = "local-batch-norm";
  options.width = 4;
  machine_is_busy = true;
  check_resume(recipe, options, 3, 5);
  const lab::TrainResult warned = lab::run_recipe(recipe, "threads", 2, options);
  machine_is_busy = false;
  const lab::TrainResult quiet = lab::run_recipe(recipe, "threads", 2, options);
  CHECK(warned.warnings.contains("like_slow_rank"));
  CHECK(!quiet.warnings.contains("like_slow_rank"));
  CHECK(warned.metrics == quiet.metrics);
}

TEST_CASE("recipes go on bit for bit in their second epoch, and at the end of the first") {
  // An epoch has 5 global batches of 256.
  for (const std::string name : {"digits", "gan", "deep-supervision", "distill", "amp-manual", "branches"}) {
    for (const int64_t before : {5, 7}) {
      CAPTURE(name);
      CAPTURE(before);
      lab::TrainOptions options = short_setting(lab::find_recipe(name), 0);
      options.global_batch = 256;
      check_resume(lab::find_recipe(name), options, before, before + 4);
    }
  }
}

TEST_CASE(
    "a training that was killed goes on from its last checkpoint, and its metrics are those of one that was not") {
  for (const std::string recipe : {"digits", "gan", "amp-manual"}) {
    CAPTURE(recipe);
    const test::TemporaryFolder folder;
    const auto options = [&](const char* name) {
      return "train " + recipe + " --quiet --backend threads --metrics " + folder / name + " ";
    };
    const std::string file = folder / "checkpoint";
    // An epoch has 22 steps.
    const std::string killed = folder / "killed.jsonl";
    const test::Outcome outcome =
        test::run_program_until(options("killed.jsonl") + "--epochs 10000 --checkpoint " + file + " --save-every 7",
                                [&] { return lines_in(killed) >= 31; });
    REQUIRE(outcome.status == 128 + SIGKILL);
    // At least 100: the networks that gan uses for evaluation learn less in fewer steps.
    const std::string steps = "--steps " + std::to_string(std::max<int64_t>(100, lines_in(killed) + 5));
    // As if it had been killed in the middle of a line.
    std::ofstream(killed, std::ios::app) << "{\"step\": ";
    const test::Outcome resumed = test::run_program(options("killed.jsonl") + steps + " --resume " + file);
    REQUIRE_MESSAGE(resumed.status == 0, resumed.output);
    const test::Outcome whole = test::run_program(options("whole.jsonl") + steps);
    REQUIRE_MESSAGE(whole.status == 0, whole.output);
    CHECK(metrics_in(killed) == metrics_in(folder / "whole.jsonl"));
  }
}

TEST_CASE("a file of another seed or batch is reported as such by every recipe") {
  for (const lab::Recipe* recipe : lab::all_recipes()) {
    CAPTURE(recipe->name);
    const test::TemporaryFolder folder;
    lab::TrainOptions options = short_setting(*recipe, 1);
    if (recipe->takes_images) options.width = 4;
    options.checkpoint = folder / "checkpoint";
    lab::run_recipe(*recipe, "threads", 2, options);
    options.resume = options.checkpoint;
    options.steps = 2;
    const auto refused = [&](const lab::TrainOptions& other) {
      return error_of([&] { lab::run_recipe(*recipe, "threads", 2, other); });
    };
    lab::TrainOptions other = options;
    other.seed = 2;
    CHECK_MESSAGE(test::contains(refused(other), "it was written with --seed 1, and this is 2"), refused(other));
    other = options;
    other.global_batch *= 2;
    CHECK_MESSAGE(test::contains(refused(other), "it was written with --batch "), refused(other));
    CHECK(refused(options) == "no error");
  }
}

TEST_CASE("a checkpoint is written at the end of an epoch, at the last step, and every --save-every steps") {
  const auto written = [](int64_t save_every, int64_t step) {
    const test::TemporaryFolder folder;
    lab::TrainOptions options;
    options.checkpoint = folder / "checkpoint";
    options.save_every = save_every;
    lab::Progress progress(options);
    progress.steps = step;
    progress.save(*dist::make_thread_groups(1).front(), 22, 50);
    return std::filesystem::exists(options.checkpoint);
  };
  for (const int64_t step : {22, 44, 50}) {
    CHECK(written(0, step));
    CHECK(written(7, step));
  }
  for (const int64_t step : {7, 14, 28}) {
    CHECK(!written(0, step));
    CHECK(written(7, step));
  }
  CHECK(!written(7, 8));
}

TEST_CASE("--save-every without a file to write is refused") {
  const test::Outcome outcome = test::run_program("train digits --quiet --save-every 7");
  CHECK(outcome.status == 2);
  CHECK_MESSAGE(test::contains(outcome.output, "name that file"), outcome.output);
}

TEST_CASE("a recipe goes on with another number of ranks, at the same example") {
  const test::TemporaryFolder folder;
  const std::string file = folder / "checkpoint";
  // Not gan: its feature matching compares means over a rank's part, so the loss depends on the number of ranks.
  for (const std::string name : {"digits", "deep-supervision", "amp-manual"}) {
    for (const int before : {1, 2, 4}) {
      CAPTURE(name);
      CAPTURE(before);
      const lab::Recipe& recipe = lab::find_recipe(name);
      lab::TrainOptions options = short_setting(recipe, 3);
      options.precision = "64-true";
      options.checkpoint = file;
      const lab::TrainResult first = lab::run_recipe(recipe, "threads", before, options);
      options.resume = file;
      options.steps = 6;
      const std::vector<double> on_one = lab::run_recipe(recipe, "threads", 1, options).loss;
      options.checkpoint = options.resume = "";
      const std::vector<double> whole = lab::run_recipe(recipe, "threads", 2, options).loss;
      std::vector<double> losses = first.loss;
      losses.insert(losses.end(), on_one.begin(), on_one.end());
      // The means of the ranks' parts are summed in another order.
      CHECK(test::worst_difference(losses, whole) < 1e-9);
    }
  }
}

}  // namespace brigade::test::recipes_resume_test
