// The list of recipes, in the order of their names.
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

}  // namespace brigade::lab
