// Trains a recipe on two ranks of a backend, and tells what rank 0 reports, or what each rank has raised.
#pragma once

#include <brigade/core/safetensors.h>
#include <brigade/lab/commands/train.h>
#include <brigade/lab/recipes/recipe.h>
#include <brigade/nn/module.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace brigade::test {

// The first verdict of an error, if it has any.
struct Raised {
  std::string text;
  std::string kind, cause, module;
  std::vector<std::string> parameters;
};

struct Trained {
  std::vector<double> loss;
  std::map<std::string, double> metrics;
  std::set<std::string> warnings;
  bool parameters_equal = false, gradients_equal = false;
  int from_epoch = 0;
  std::string sample;
  std::vector<Raised> raised;  // per rank, if any has failed
};

// threads, shm, and Gloo where this build has it.
std::vector<std::string> recipe_backends();

using Train = std::function<lab::TrainResult(const dist::ProcessGroupPtr& group)>;
Trained train_on(const std::string& backend, const Train& train, int ranks = 2);

// A form of a recipe on two threads, as `brigade train --form` runs it.
lab::FormOutcome run_form_of(const std::string& recipe, const std::string& form, int epochs,
                             const std::string& precision);

// The tensors "parameter.NAME" of a fixture.
nn::Named<Tensor> parameters_of(const SafetensorsFile& fixture);
// Into the module. Throws ValueError when they are not those of the module.
void load_parameters(nn::Module& module, const nn::Named<Tensor>& parameters);
// The largest relative difference of two curves of `count` steps, the first of which may be longer.
double worst_difference(const std::vector<double>& actual, const std::vector<double>& expected);

}  // namespace brigade::test
