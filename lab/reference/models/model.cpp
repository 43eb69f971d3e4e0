// The registry of models by name. An argument that a model does not read is an error.
#include <brigade/lab/reference/models/model.h>

#include <map>

namespace brigade::lab::reference {
namespace {

std::map<std::string, ModelFactory>& registry() {
  static std::map<std::string, ModelFactory> models;
  return models;
}

}  // namespace

AddModel::AddModel(const char* name, ModelFactory factory) { registry().emplace(name, factory); }

std::unique_ptr<Model> make_model(const std::string& name, const Arguments& args) {
  const auto found = registry().find(name);
  if (found == registry().end()) {
    std::string known;
    for (const auto& [other, factory] : registry())
      known += (known.empty() ? "" : ", ") + other;
    throw ValueError("unknown model '{}'; known are {}", name, known);
  }
  std::unique_ptr<Model> model = found->second(args);
  if (const std::vector<std::string> unused = args.unused(); !unused.empty())
    throw ValueError("the model '{}' did not look at the argument '{}'", name, unused[0]);
  return model;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : registry())
    names.push_back(name);
  return names;
}

}  // namespace brigade::lab::reference
