// A multilayer perceptron: linear layers with tanh between them, and a cross entropy.
#include <brigade/autograd/functional.h>
#include <brigade/lab/reference/models/model.h>
#include <brigade/nn/nn.h>

namespace brigade::lab::reference {
namespace {

struct MLPImpl : nn::Module {
  nn::ModuleList<nn::Linear> layers{nullptr};
  explicit MLPImpl(const Shape& sizes) {
    layers = register_module("layers", nn::ModuleList<nn::Linear>());
    for (int i = 1; i < sizes.size(); ++i)
      layers->push_back(nn::Linear(sizes[i - 1], sizes[i]));
  }
  Tensor forward(Tensor x) {
    for (size_t i = 0; i + 1 < layers->size(); ++i)
      x = brigade::tanh((*layers)[i](x));
    return (*layers)[layers->size() - 1](x);
  }
};
BRIGADE_MODULE(MLP);

class MLPModel final : public Model {
 public:
  explicit MLPModel(const Arguments& args) : net_(args.shape("sizes")) {}
  nn::Module& module() override { return *net_; }
  Step run(int, const std::vector<Tensor>& inputs) override {
    const Tensor logits = net_(inputs.at(0));
    return {cross_entropy(logits, inputs.at(1)), {logits}};
  }

 private:
  MLP net_;
};

const AddModel add_mlp("mlp", [](const Arguments& args) -> std::unique_ptr<Model> {
  return std::make_unique<MLPModel>(args);
});

}  // namespace
}  // namespace brigade::lab::reference
