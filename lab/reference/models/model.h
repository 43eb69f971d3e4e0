// The models that `brigade check` knows by name. Their PyTorch counterparts, with the same names of
// parameters, are in tests/reference/models.py; docs/check.md lists them for users.
#pragma once

#include <brigade/lab/reference/operation.h>
#include <brigade/nn/check.h>

#include <memory>
#include <string>
#include <vector>

namespace brigade::lab::reference {

using check::Step;

// A training step has one or more phases, each with a loss and the part of the model that its gradients update.
class Model {
 public:
  virtual ~Model() = default;
  // The whole model.
  virtual nn::Module& module() = 0;
  virtual int phases() const { return 1; }
  virtual nn::Module& trained(int phase) {
    static_cast<void>(phase);
    return module();
  }
  virtual Step run(int phase, const std::vector<Tensor>& inputs) = 0;
};

using ModelFactory = std::unique_ptr<Model> (*)(const Arguments& args);

// Each model's file defines a static object of this type.
struct AddModel {
  AddModel(const char* name, ModelFactory factory);
};

// Throws ValueError that lists the known models.
std::unique_ptr<Model> make_model(const std::string& name, const Arguments& args);
std::vector<std::string> model_names();

}  // namespace brigade::lab::reference
