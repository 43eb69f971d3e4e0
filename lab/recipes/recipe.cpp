// The list of recipes, in the order of their names, and their forms.
#include <brigade/lab/recipes/recipe.h>

#include <brigade/core/error.h>

#include <utility>

namespace brigade::lab {
namespace {

std::map<std::string, Recipe>& registry() {
  static std::map<std::string, Recipe> recipes;
  return recipes;
}

}  // namespace

AddRecipe::AddRecipe(Recipe recipe) {
  std::string name = recipe.name;
  if (recipe.forms.empty()) recipe.forms.push_back({.name = "default", .about = recipe.about});
  registry().emplace(std::move(name), std::move(recipe));
}

bool is_recipe(const std::string& name) { return registry().contains(name); }

const Recipe& find_recipe(const std::string& name) {
  const auto found = registry().find(name);
  if (found == registry().end()) throw ValueError("unknown recipe '{}'; known are {}", name, recipe_names());
  return found->second;
}

std::string recipe_names() {
  std::string names;
  for (const auto& [name, recipe] : registry())
    names += (names.empty() ? "" : ", ") + name;
  return names;
}

std::vector<const Recipe*> all_recipes() {
  std::vector<const Recipe*> recipes;
  for (const auto& [name, recipe] : registry())
    recipes.push_back(&recipe);
  return recipes;
}

const Form& find_form(const Recipe& recipe, const std::string& name) {
  if (name.empty()) return recipe.forms.front();
  for (const Form& form : recipe.forms) {
    if (form.name == name) return form;
  }
  throw ValueError("the recipe {} has no form '{}'; its forms are {}", recipe.name, name, form_names(recipe));
}

std::string form_names(const Recipe& recipe) {
  std::string names;
  for (const Form& form : recipe.forms)
    names += (names.empty() ? "" : ", ") + form.name;
  return names;
}

std::string short_trace(const Recipe& recipe, const dist::ProcessGroupPtr& group, double bucket_mb) {
  if (recipe.trace) return recipe.trace(group, bucket_mb);
  TrainOptions options = recipe.defaults;
  options.steps = 5;
  options.trace_steps = 2;
  options.bucket_mb = bucket_mb;
  options.progress = false;
  return recipe.train(group, options).trace;
}

}  // namespace brigade::lab
