#include "recipe_ranks.h"

#include <brigade/dist/errors/verdict.h>

#include <dist/processes.h>
#include <near.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace brigade::test {

using nlohmann::json;

namespace {

json as_json(const lab::TrainResult& result) {
  return {{"loss", result.loss},
          {"metrics", result.metrics},
          {"warnings", result.warnings},
          {"parameters_equal", result.parameters_equal},
          {"gradients_equal", result.gradients_equal},
          {"from_epoch", result.from_epoch},
          {"sample", result.sample}};
}

json as_json(const std::exception& error) {
  json raised{{"text", error.what()}, {"kind", ""}, {"cause", ""}, {"module", ""}, {"parameters", json::array()}};
  const auto* diagnosed = dynamic_cast<const dist::Diagnosed*>(&error);
  if (diagnosed && !diagnosed->verdicts().empty()) {
    const dist::Verdict& verdict = diagnosed->verdicts().front();
    raised["kind"] = verdict.kind;
    raised["cause"] = dist::name(verdict.cause.kind);
    raised["module"] = verdict.cause.module;
    for (const dist::ParameterVerdict& parameter : verdict.parameters)
      raised["parameters"].push_back(parameter.name);
  }
  return {{"raised", raised}};
}

}  // namespace

std::vector<std::string> recipe_backends() {
  std::vector<std::string> chosen;
  for (const std::string& backend : backends()) {
    if (backend == "threads" || backend == "shm" || backend == "gloo") chosen.push_back(backend);
  }
  return chosen;
}

Trained train_on(const std::string& backend, const Train& train, int ranks) {
  const auto body = [&](const dist::ProcessGroupPtr& group) {
    try {
      return as_json(train(group)).dump();
    } catch (const std::exception& error) {
      return as_json(error).dump();
    }
  };
  const std::vector<Rank> done = run_ranks(backend, ranks, body);
  Trained trained;
  for (const Rank& rank : done) {
    REQUIRE_FALSE(rank.hung);
    REQUIRE(rank.signal == 0);
    REQUIRE_MESSAGE(rank.error == "", rank.text);
    const json told = json::parse(rank.result);
    if (!told.contains("raised")) continue;
    const json& raised = told.at("raised");
    trained.raised.push_back(
        {raised.at("text"), raised.at("kind"), raised.at("cause"), raised.at("module"), raised.at("parameters")});
  }
  if (!trained.raised.empty()) return trained;
  const json told = json::parse(done.at(0).result);
  trained.loss = told.at("loss").get<std::vector<double>>();
  trained.metrics = told.at("metrics").get<std::map<std::string, double>>();
  trained.warnings = told.at("warnings").get<std::set<std::string>>();
  trained.parameters_equal = told.at("parameters_equal");
  trained.gradients_equal = told.at("gradients_equal");
  trained.from_epoch = told.at("from_epoch");
  trained.sample = told.at("sample");
  return trained;
}

lab::FormOutcome run_form_of(const std::string& recipe, const std::string& form, int epochs,
                             const std::string& precision) {
  const lab::Recipe& found = lab::find_recipe(recipe);
  lab::TrainOptions options = found.defaults;
  options.epochs = epochs;
  options.precision = precision;
  options.progress = false;
  return lab::run_form(found, lab::find_form(found, form), {.backend = "threads"}, options);
}

nn::Named<Tensor> parameters_of(const SafetensorsFile& fixture) {
  const std::string prefix = "parameter.";
  nn::Named<Tensor> parameters;
  for (const SafetensorsEntry& entry : fixture.entries()) {
    if (entry.name.starts_with(prefix))
      parameters.emplace_back(entry.name.substr(prefix.size()), fixture.tensor(entry.name));
  }
  return parameters;
}

void load_parameters(nn::Module& module, const nn::Named<Tensor>& parameters) {
  // Not strict: a tied tensor has one name in the fixture but two in the module.
  const nn::IncompatibleKeys keys = module.load_state_dict(parameters, /*strict=*/false);
  if (!keys.unexpected.empty() || module.named_parameters().size() != parameters.size())
    throw ValueError("the fixture has other parameters than the module");
}

double worst_difference(const std::vector<double>& actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() >= expected.size());
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    worst = worse(worst, std::abs(actual[i] - expected[i]) / std::abs(expected[i]));
  return worst;
}

}  // namespace brigade::test
