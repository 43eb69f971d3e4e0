// Every form of every recipe on every backend: right forms train identically on all ranks, the others end in their
// verdict.
#include <brigade/dist/groups/backends.h>
#include <brigade/lab/commands/train.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/png.h>

#include "program.h"
#include "recipe_ranks.h"

#include <test_part.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace brigade::test::recipes_test {

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(getpid()) + name)).string();
}

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("every form ends as it says, on threads, in shared memory and over Gloo, and --compare shows it") {
  const std::string file = temporary("brigade-compare.json");
  std::vector<std::string> backends{"threads", "shm"};
  if (dist::find_backend("gloo").missing.empty()) backends.emplace_back("gloo");
  const std::vector<const lab::Recipe*> recipes = lab::all_recipes();
  for (size_t index = 0; index < recipes.size(); ++index) {
    if (!test::is_of_this_part(index)) continue;
    const lab::Recipe* const recipe = recipes[index];
    int64_t steps = 3;
    for (const lab::Form& form : recipe->forms)
      steps = std::max(steps, form.shows_in);
    // The losses have the same bits on every backend, so what is checked below on threads holds on all backends.
    std::vector<nlohmann::json> losses(recipe->forms.size());
    for (const std::string& backend : backends) {
      CAPTURE(recipe->name);
      CAPTURE(backend);
      const test::Outcome outcome =
          test::run_program("train " + recipe->name + " --compare --quiet --steps " + std::to_string(steps) +
                            " --backend " + backend + " --json " + file);
      REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
      const nlohmann::json rows = nlohmann::json::parse(contents(file)).at("results");
      REQUIRE(rows.size() == recipe->forms.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        const lab::Form& form = recipe->forms[i];
        const nlohmann::json& row = rows[i];
        CAPTURE(form.name);
        CHECK(row.at("form") == form.name);
        CHECK(row.at("as_expected") == true);
        CHECK(row.at("verdict") == row.at("expected_verdict"));
        CHECK(row.at("verdict").is_null() == form.is_right());
        CHECK(test::contains(outcome.output, form.name));
        if (!form.is_right()) {
          // Errors of the loss scaler word their advice differently.
          if (form.verdict.kind != "error") CHECK(test::contains(row.at("error"), "do:  "));
          continue;
        }
        CHECK(row.at("loss").size() == static_cast<size_t>(steps));
        if (backend == "threads") losses[i] = row.at("loss");
        CHECK(row.at("loss") == losses[i]);
        CHECK(row.at("gradients_equal") == true);
        CHECK(row.at("parameters_equal") == true);
        CHECK(row.at("collectives_per_step") >= 1);
        CHECK(row.at("bytes_per_step") > 0);
      }
    }
  }
  std::filesystem::remove(file);
}

TEST_CASE("the first form of a recipe is right, names are distinguished, and every failing form is a planted fault") {
  for (const lab::Recipe* recipe : lab::all_recipes()) {
    CAPTURE(recipe->name);
    CHECK(recipe->forms.front().is_right());
    CHECK(recipe->about != "");
    for (const lab::Form& form : recipe->forms) {
      CAPTURE(form.name);
      CHECK(&lab::find_form(*recipe, form.name) == &form);
      CHECK((form.is_right() || !form.fault.empty()));
      if (form.fault.empty()) continue;
      const lab::Fault& fault = lab::find_fault(form.fault);
      const bool warns = !form.warning.empty();
      CHECK(fault.expected.detected == (!form.is_right() || warns));
      CHECK(fault.expected.kind == (warns ? form.warning : form.verdict.kind));
      if (!warns) CHECK(fault.expected.cause == form.verdict.cause);
    }
  }
}

TEST_CASE(
    "[000.7] [000.12] every right form of gan makes digits that a classifier names, and the discriminator cannot tell them") {
  const lab::Recipe& recipe = lab::find_recipe("gan");
  lab::TrainOptions options = recipe.defaults;
  options.epochs = 15;
  options.progress = false;
  for (const lab::Form& form : recipe.forms) {
    if (!form.is_right()) continue;
#ifdef __SANITIZE_ADDRESS__
    if (&form != &recipe.forms.front()) continue;  // ten times slower, and runs the same code
#endif
    CAPTURE(form.name);
    const lab::FormOutcome outcome = lab::run_form(recipe, form, {.backend = "threads"}, options);
    REQUIRE_MESSAGE(outcome.expected, outcome.error.text);
    CHECK(outcome.result.metrics.at("named with confidence") >= 0.8);
    CHECK(outcome.result.metrics.at("named as asked") >= 0.8);
    CHECK(outcome.result.metrics.at("discriminator accuracy") >= 0.4);
    CHECK(outcome.result.metrics.at("discriminator accuracy") <= 0.65);
  }
}

TEST_CASE("[001.4] deep supervision finds the digits, and the popular backward of an unused output harms it") {
  const lab::Recipe& recipe = lab::find_recipe("deep-supervision");
  lab::TrainOptions options = recipe.defaults;
  options.progress = false;
  const auto iou = [&](const std::string& form) {
    const lab::FormOutcome outcome =
        lab::run_form(recipe, lab::find_form(recipe, form), {.backend = "threads"}, options);
    REQUIRE_MESSAGE(outcome.expected, outcome.error.text);
    return outcome.result.metrics.at("iou");
  };
  const double all = iou("all-scales");
  CHECK(all >= 0.8);
  CHECK(iou("weights-in-a-buffer") >= 0.8);
  CHECK(iou("extra-backward-find-unused") < all - 0.02);
}

TEST_CASE("train --list names recipes and forms; a failing form prints its verdict") {
  const test::Outcome list = test::run_program("train --list");
  CHECK(list.status == 0);
  for (const char* part : {"digits", "gan", "two-wrappers", "fails: unused_parameters (detached), UNU-12"})
    CHECK_MESSAGE(test::contains(list.output, part), part);

  const test::Outcome failing = test::run_program("train gan --quiet --steps 2 --form failing");
  CHECK(failing.status == 1);
  for (const char* part : {"It has to end in unused_parameters (detached)", "at lab/recipes/gan/step.cpp:",
                           "why: detach() at line ", "generator.fc.weight", "fabric.toggle_optimizer(optimizer)"})
    CHECK_MESSAGE(test::contains(failing.output, part), failing.output);
}

TEST_CASE("a training that diverges says so, and its result is written all the same") {
  const std::string file = temporary("brigade-diverged.json");
  for (const std::string backend : {"threads", "shm"}) {
    CAPTURE(backend);
    const test::Outcome outcome =
        test::run_program("train digits --quiet --epochs 1 --lr 1e5 --backend " + backend + " --json " + file);
    REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
    CHECK(test::contains(outcome.output, "nan in 22 steps"));
    CHECK(nlohmann::json::parse(contents(file)).at("results").at(0).at("loss").back().is_null());
  }
  std::filesystem::remove(file);
}

TEST_CASE("explain shows how the gradients of each recipe travel") {
  for (const lab::Recipe* recipe : lab::all_recipes()) {
    const test::Outcome outcome = test::run_program("explain " + recipe->name + " --backend threads");
    CHECK_MESSAGE(outcome.status == 0, outcome.output);
    CHECK_MESSAGE(test::contains(outcome.output, "Ready order of the last backward on rank 0: "), outcome.output);
  }
}

TEST_CASE("--metrics gets a line of JSON for each step, and --picture a PNG") {
  const std::string lines = temporary("brigade-metrics.jsonl");
  const std::string picture = temporary("brigade-digits.png");
  std::string arguments = "train gan --quiet --steps 3 --metrics " + lines;
  if (lab::has_png()) arguments += " --picture " + picture;
  const test::Outcome outcome = test::run_program(arguments);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  std::ifstream in(lines);
  int64_t step = 0;
  nlohmann::json last;
  for (std::string line; std::getline(in, line);) {
    last = nlohmann::json::parse(line);
    if (last.contains("metrics")) break;
    CHECK(last.at("step") == ++step);
    CHECK(last.at("generator").get<double>() > 0);
    CHECK(last.at("discriminator").get<double>() > 0);
    CHECK(last.at("ms").get<double>() > 0);
  }
  CHECK(step == 3);
  CHECK(last.at("metrics").contains("discriminator accuracy"));
  std::filesystem::remove(lines);
  if (!lab::has_png()) return;
  // Ten digits of 8 x 8 pixels in a row, each pixel 8 pixels wide, with gaps of 2.
  const std::string png = contents(picture);
  REQUIRE(png.size() > 24);
  CHECK(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(png.substr(12, 4) == "IHDR");
  for (const size_t at : {16, 20}) {
    const auto byte = [&](size_t i) { return static_cast<int>(static_cast<unsigned char>(png[at + i])); };
    CHECK((byte(0) == 0 && byte(1) == 0 && byte(2) * 256 + byte(3) == 10 * 66 - 2));
  }
  std::filesystem::remove(picture);
}

}  // namespace brigade::test::recipes_test
