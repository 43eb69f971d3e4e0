// optimizers_differ() on synthetic evidence, without ranks: steps, classes, hyperparameters, members, states. Each has
// a healthy twin, which must give no verdict.
#include <brigade/brigade.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/wire.h>

#include <doctest/doctest.h>

namespace brigade::test::optimizers_differ_test {
using dist::CauseKind;
using dist::Severity;

std::vector<dist::NamedParameter> three_parameters() {
  return {{"a.weight", zeros({4})}, {"b.weight", zeros({2})}, {"c", zeros({1})}};
}

TEST_CASE("optimizers_differ: the step, a hyperparameter, the set of gradients; equal ranks say nothing") {
  const dist::StepOnRank usual{"step 3 of SGD", {"a.cpp", 5}, "group 0: lr 0.1, momentum 0.9", "111", {}};
  const auto parameters = three_parameters();
  std::vector<dist::StepOnRank> steps(3, usual);
  CHECK(dist::optimizers_differ(steps, "SGD", parameters).empty());

  steps[1].options = "group 0: lr 0.2, momentum 0.9";
  auto verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].cause.kind == CauseKind::OptionsDiffer);
  CHECK(verdicts[0].cause.op == "lr of group 0");
  CHECK(verdicts[0].ranks == std::vector<int>{1});
  CHECK(verdicts[0].cause.place.line == 5);

  steps[1] = usual;
  steps[2].gradients = "101";
  verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].parameters[0].name == "b.weight");
  CHECK(verdicts[0].ranks == std::vector<int>{2});

  CHECK(verdicts[0].cause.text == "it has a gradient on ranks 0 and 1 and none on rank 2");
  CHECK(verdicts[0].parameters[0].missing_ranks == std::vector<int>{2});

  // If a rank is in another step, nothing else can be compared.
  steps[2].name = "step 4 of SGD";
  verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].cause.kind == CauseKind::StepsDiffer);
  CHECK(verdicts[0].cause.text.find("rank 2 in step 4 of SGD at a.cpp:5") != std::string::npos);

  // The same after a join in which one rank has stepped more often.
  for (dist::StepOnRank& step : steps)
    step.since_join = 1, step.in_join = 2;
  steps[2].in_join = 3;
  verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].ranks == std::vector<int>{2});
  CHECK(verdicts[0].cause.text.find("ranks 0 and 1 took 2 steps, rank 2 took 3 steps") != std::string::npos);
  CHECK(verdicts[0].advice.find("join") != std::string::npos);
}

TEST_CASE("optimizers_differ: optimizers of different classes, by the lines that made them") {
  dist::StepOnRank usual{"step 1 of SGD", {"a.cpp", 9}, "group 0: lr 0.1", "1", {}};
  usual.members = {{"a.weight", 0}};
  usual.since_join = 1;
  usual.optimizer = "SGD";
  usual.made_at = {"a.cpp", 5};
  std::vector<dist::StepOnRank> steps(3, usual);
  steps[2].name = "step 1 of AdamW";
  steps[2].optimizer = "AdamW";
  steps[2].made_at = {"a.cpp", 7};
  auto verdicts = dist::optimizers_differ(steps, "SGD", three_parameters());
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].cause.op == "optimizer");
  CHECK(verdicts[0].ranks == std::vector<int>{2});
  CHECK(verdicts[0].cause.place == Place("a.cpp", 7));
  CHECK(verdicts[0].what == "The ranks move the same parameters by different optimizers");
  CHECK(verdicts[0].cause.text == "ranks 0 and 1 have SGD, made at a.cpp:5, rank 2 has AdamW, made at a.cpp:7");
  CHECK(verdicts[0].advice == "make an optimizer of the same class on every rank");

  // Made by std::make_unique: the line is not known.
  steps[2].made_at = {};
  verdicts = dist::optimizers_differ(steps, "SGD", three_parameters());
  CHECK(verdicts[0].cause.text.ends_with("rank 2 has AdamW, which steps at a.cpp:9"));

  // Each rank steps one of its two optimizers, in another order.
  steps[2].members = {{"b.weight", 0}};
  verdicts = dist::optimizers_differ(steps, "SGD", three_parameters());
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].cause.kind == dist::CauseKind::StepsDiffer);
  CHECK(verdicts[0].cause.text.starts_with("ranks 0 and 1 in step 1 of SGD at"));

  // A rank may use any optimizer for a parameter that it alone moves.
  steps.pop_back();
  steps[1] = steps[0];
  steps[1].name = "step 1 of AdamW";
  steps[1].optimizer = "AdamW";
  steps[1].members = {{"b.weight", 0}};
  CHECK(dist::optimizers_differ(steps, "SGD", three_parameters()).empty());
}

TEST_CASE("optimizers_differ: parameters that some ranks hold, or hold in a group with other options") {
  const auto parameters = three_parameters();
  std::vector<dist::StepOnRank> steps(3, {"step 1 of SGD", {"a.cpp", 5}, "group 0: lr 0.1\ngroup 1: lr 0.2", "11", {}});
  for (dist::StepOnRank& step : steps)
    step.members = {{"a.weight", 0}, {"b.weight", 1}};
  CHECK(dist::optimizers_differ(steps, "SGD", parameters).empty());

  std::swap(steps[1].members[0].group, steps[1].members[1].group);
  auto verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].ranks == std::vector<int>{1});
  CHECK(verdicts[0].parameters.size() == 2);
  CHECK(verdicts[0].what == "In groups of SGD with other options");
  CHECK(verdicts[0].cause.text == "ranks 0 and 2 have it in group 0, lr 0.1, rank 1 has it in group 1, lr 0.2");

  // The groups themselves are swapped.
  steps[1].options = "group 0: lr 0.2\ngroup 1: lr 0.1";
  verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].cause.op == "order of the parameter groups");

  steps[1] = steps[0];
  steps[1].members.pop_back();
  steps[1].gradients = "1";
  verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].cause.text == "SGD holds it on ranks 0 and 2 and not on rank 1");
  CHECK(verdicts[0].parameters[0].missing_ranks == std::vector<int>{1});

  // Each rank steps one of its two optimizers, and one has moved the other parameters with its other optimizer before.
  std::vector<dist::StepOnRank> mixed(2, {"step 2 of SGD", {"a.cpp", 5}, "group 0: lr 0.1", "1", {}});
  mixed[0].members = {{"a.weight", 0}};
  mixed[1].members = {{"b.weight", 0}};
  CHECK(dist::optimizers_differ(mixed, "SGD", parameters).empty());
  mixed[0].moved_by_others = {"b.weight"};
  verdicts = dist::optimizers_differ(mixed, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].parameters.size() == 2);

  // Each parameter is held by one rank alone, which sends it to the others.
  steps[0].members = {{"a.weight", 0}};
  steps[1].members = {{"b.weight", 0}};
  steps[2].members = {};
  CHECK(dist::optimizers_differ(steps, "SGD", parameters).empty());
}

TEST_CASE("optimizers_differ: of two ranks none is blamed, and both are reported with their values and lines") {
  const auto parameters = three_parameters();
  std::vector<dist::StepOnRank> steps(2, {"step 3 of SGD", {"a.cpp", 5}, "group 0: lr 0.1", "111", {}});
  steps[1].options = "group 0: lr 0.2";
  auto verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].ranks.empty());
  CHECK(verdicts[0].what == "lr of group 0 differs between the ranks");
  CHECK(verdicts[0].cause.text == "rank 0 has 0.1, rank 1 has 0.2");
  steps[1].where = {"a.cpp", 9};
  verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].cause.text == "rank 0 has 0.1 at a.cpp:5, rank 1 has 0.2 at a.cpp:9");
  // Many digits are printed only where fewer would not tell the values apart.
  steps[0].options = "group 0: lr 0.07639320225002104, momentum 0";
  steps[1].options = "group 0: lr 0.09755282581475769, momentum 0";
  CHECK(dist::optimizers_differ(steps, "SGD", parameters)[0].cause.text ==
        "rank 0 has 0.07639 at a.cpp:5, rank 1 has 0.09755 at a.cpp:9");
  steps[1].options = "group 0: lr 0.07639320225002105, momentum 0.9";
  verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  CHECK(verdicts[0].what == "lr of group 0, momentum of group 0 differs between the ranks");
  CHECK(verdicts[0].cause.text ==
        "lr of group 0: rank 0 has 0.07639320225002104 at a.cpp:5, rank 1 has 0.07639320225002105 at a.cpp:9");
  // The line that gave the value, if it is known.
  steps = std::vector<dist::StepOnRank>(2, {"step 3 of SGD", {"a.cpp", 5}, "group 0: lr 0.1", "111", {}});
  steps[1].options = "group 0: lr 0.2";
  steps[1].options_set = {{"lr of group 0", "set by StepLR.step()", {"a.cpp", 7}}};
  verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  CHECK(verdicts[0].cause.text == "rank 0 has 0.1, rank 1 has 0.2 (set by StepLR.step() at a.cpp:7)");
  CHECK(verdicts[0].cause.place == Place("a.cpp", 7));
  steps[0].options_set = steps[1].options_set;
  CHECK(dist::optimizers_differ(steps, "SGD", parameters)[0].cause.text ==
        "rank 0 has 0.1, rank 1 has 0.2; set by StepLR.step() at a.cpp:7");
  for (dist::StepOnRank& step : steps)
    step.options_set.clear(), step.optimizer = "SGD", step.made_at = {"a.cpp", 2}, step.made_with = step.options;
  CHECK(dist::optimizers_differ(steps, "SGD", parameters)[0].cause.text ==
        "rank 0 has 0.1, rank 1 has 0.2; SGD made at a.cpp:2");
  steps[1].made_with = steps[0].options;  // written since, by a line that is not known
  verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  CHECK(verdicts[0].cause.text == "rank 0 has 0.1, rank 1 has 0.2");
  CHECK(verdicts[0].cause.place == Place("a.cpp", 5));
  steps[1].options = steps[0].options;
  steps[1].where = {"a.cpp", 9};
  steps[1].gradients = "101";
  verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].ranks.empty());
  CHECK(verdicts[0].cause.text == "it has a gradient on rank 0 and none on rank 1");
  steps[1].name = "step 4 of SGD";
  verdicts = dist::optimizers_differ(steps, "SGD", parameters);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].ranks.empty());
  CHECK(verdicts[0].what == "The ranks are in different optimizer steps");
  CHECK(verdicts[0].cause.text == "rank 0 in step 3 of SGD at a.cpp:5, rank 1 in step 4 of SGD at a.cpp:9");
}

TEST_CASE("optimizers_differ: of the ranks that have loaded a state those are named that hold another than most") {
  std::vector<dist::StepOnRank> steps(3, {"step 3 of Adam", {"a.cpp", 5}, "", "111", {}});
  steps[1].state_was_loaded = true;
  steps[1].state_loaded_at = {"a.cpp", 3};
  dist::Verdict verdict = dist::other_state(steps, {{1}, "moments, momentum", {}}, "Adam");
  CHECK(verdict.kind == "optimizers_differ");
  CHECK(verdict.cause.kind == CauseKind::ValuesDiffer);
  CHECK(verdict.ranks == std::vector<int>{1});
  CHECK(verdict.cause.place.line == 3);
  CHECK(verdict.cause.text.starts_with("rank 1 loaded another state into Adam"));
  // It has loaded what most hold: the other did not.
  steps[2].state_was_loaded = true;
  CHECK(dist::other_state(steps, {{2}, "moments, momentum", {}}, "Adam").ranks == std::vector<int>{2});
  CHECK(dist::other_state(steps, {{0}, "moments, momentum", {}}, "Adam").ranks == std::vector<int>{1, 2});
  // Of two ranks, neither is more suspect than the other.
  steps.resize(2);
  steps[0].state_was_loaded = true;
  steps[0].state_loaded_at = {"a.cpp", 2};
  verdict = dist::other_state(steps, {{1}, "moments, momentum", {}}, "Adam");
  CHECK(verdict.ranks == std::vector<int>{0, 1});
  CHECK(verdict.cause.text ==
        "the ranks loaded different states into Adam (moments, momentum): rank 0 at a.cpp:2, rank 1 at a.cpp:3");
}

TEST_CASE(
    "optimizers_differ: a write to the optimizer's state is reported with its line and the parameters that differ") {
  std::vector<dist::StepOnRank> steps(3, {"step 3 of Adam", {"a.cpp", 5}, "", "111", {}});
  steps[2].state_writes = {{"a.weight", "mul_", {"a.cpp", 3}}, {"b.weight", "zero_", {"a.cpp", 4}}};
  const Tensor weight = zeros({2});
  const dist::Verdict verdict = dist::other_state(steps, {{2}, "moments, momentum", {{"b.weight", weight}}}, "Adam");
  CHECK(verdict.kind == "optimizers_differ");
  CHECK(verdict.ranks == std::vector<int>{2});
  CHECK(verdict.cause.op == "zero_");
  CHECK(verdict.cause.place.line == 4);
  REQUIRE(verdict.parameters.size() == 1);
  CHECK(verdict.parameters[0].name == "b.weight");
  CHECK(verdict.cause.text.starts_with("zero_ at a.cpp:4 (rank 2) changed the state of Adam"));
  // Another rank has loaded what most ranks hold.
  steps[0].state_was_loaded = true;
  CHECK(dist::other_state(steps, {{2}, "moments, momentum", {}}, "Adam").ranks == std::vector<int>{2});
}

}  // namespace brigade::test::optimizers_differ_test
