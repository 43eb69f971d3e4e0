// Trains a recipe on two ranks of a backend, and returns the result of rank 0 or the errors of each rank.
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

// The error of a rank, with the first verdict that it contains, if any.
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
  std::vector<Raised> raised;  // per rank, if any rank failed
};

// threads, shm, and Gloo if this build has it.
std::vector<std::string> recipe_backends();

using Train = std::function<lab::TrainResult(const dist::ProcessGroupPtr& group)>;
Trained train_on(const std::string& backend, const Train& train, int ranks = 2);

// Runs a form of a recipe on two threads, as `brigade train --form` does.
lab::FormOutcome run_form_of(const std::string& recipe, const std::string& form, int epochs,
                             const std::string& precision);

// The tensors "parameter.NAME" of a fixture.
nn::Named<Tensor> parameters_of(const SafetensorsFile& fixture);
// Loads the parameters into the module. Throws ValueError if they do not match the module's.
void load_parameters(nn::Module& module, const nn::Named<Tensor>& parameters);
// The largest relative difference between two curves over the length of `expected`; `actual` may be longer.
double worst_difference(const std::vector<double>& actual, const std::vector<double>& expected);

}  // namespace brigade::test
