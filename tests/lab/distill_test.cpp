// The recipe distill: each form on each backend, and PyTorch's loss curve.
#include <brigade/lab/recipes/distill.h>

#include "program.h"
#include "recipe_ranks.h"

#include <doctest/doctest.h>

namespace brigade::test::distill_test {

using test::Trained;

lab::TrainOptions options_of(const std::string& form, int64_t steps) {
  lab::TrainOptions options = lab::find_recipe("distill").defaults;
  options.form = form;
  options.steps = steps;
  options.progress = false;
  return options;
}

Trained train(const std::string& backend, const lab::TrainOptions& options, const lab::DistillSettings& settings = {}) {
  return test::train_on(backend, [&](const auto& group) { return lab::train_distill(group, options, settings); });
}

const std::vector<std::string> kRight{"whole-module", "student-alone", "child-called", "loss-all-reduce"};

TEST_CASE(
    "DIV-01, DIV-02: whichever module is wrapped or called, all ranks have the same gradients and the same curve") {
  for (const std::string& backend : test::recipe_backends()) {
    const Trained reference = train(backend, options_of("whole-module", 60), {.teacher_epochs = 3});
    for (const std::string& form : kRight) {
      const Trained trained = train(backend, options_of(form, 60), {.teacher_epochs = 3});
      CAPTURE(backend);
      CAPTURE(form);
      REQUIRE_MESSAGE(trained.raised.empty(), trained.raised.front().text);
      CHECK(trained.parameters_equal);
      CHECK(trained.gradients_equal);
      CHECK(trained.loss == reference.loss);
    }
  }
}

TEST_CASE("gradients that stay on their rank, whatever becomes of the loss, are an error before the first step") {
  const Trained trained = train("threads", options_of("local-gradients", 3), {.teacher_epochs = 1});
  REQUIRE(trained.raised.size() == 2);
  for (const test::Raised& raised : trained.raised) {
    CAPTURE(raised.text);
    CHECK(raised.kind == "unreduced_gradients");
    CHECK(raised.parameters.size() == 6);
    CHECK(raised.parameters.front() == "student.conv.weight");
    CHECK(test::contains(raised.text, "distill.cpp:"));
  }
}

TEST_CASE("the student reads at least 97 % of the held-out digits") {
  const Trained trained = train("threads", options_of("whole-module", 0));
  REQUIRE_MESSAGE(trained.raised.empty(), trained.raised.front().text);
  CHECK(trained.metrics.at("accuracy") >= 0.97);
  CHECK(trained.metrics.at("teacher accuracy") >= 0.97);
}

TEST_CASE("the curve of distill in float64 is PyTorch's") {
  const SafetensorsFile fixture(BRIGADE_TEST_DATA "/distill.safetensors");
  const nn::Named<Tensor> start = test::parameters_of(fixture);
  const lab::DistillSettings settings{.teacher_epochs = 0, .shuffle = false, .start = [&](lab::TeacherStudent& pair) {
                                        test::load_parameters(*pair, start);
                                      }};
  const std::vector<double> expected = fixture.tensor("loss").to_vector<double>();
  REQUIRE(expected.size() == 50);
  for (const std::string& form : kRight) {
    lab::TrainOptions options = options_of(form, 50);
    options.precision = "64-true";
    const Trained trained = train("threads", options, settings);
    CAPTURE(form);
    REQUIRE_MESSAGE(trained.raised.empty(), trained.raised.front().text);
    CHECK(test::worst_difference(trained.loss, expected) < 1e-9);
  }
}

}  // namespace brigade::test::distill_test
