// A convolutional network with batch norm: two blocks with pooling, for images of 8 x 8, and a
// cross entropy.
#include <brigade/autograd/functional.h>
#include <brigade/lab/reference/models/conv_norm.h>
#include <brigade/lab/reference/models/model.h>
#include <brigade/nn/nn.h>

namespace brigade::lab::reference {
namespace {

struct CNNImpl : nn::Module {
  ConvNorm block1{nullptr}, block2{nullptr};
  nn::Linear head{nullptr};
  CNNImpl(const Shape& channels, int64_t classes) {
    block1 = register_module("block1", ConvNorm(channels[0], channels[1]));
    block2 = register_module("block2", ConvNorm(channels[1], channels[2]));
    head = register_module("head", nn::Linear(channels[2] * 4, classes));
  }
  Tensor forward(Tensor x) {
    x = max_pool2d(block1(x), 2);
    x = avg_pool2d(block2(x), 2);
    return head(x.flatten(1));
  }
};
BRIGADE_MODULE(CNN);

class CNNModel final : public Model {
 public:
  explicit CNNModel(const Arguments& args) : net_(args.shape_of("channels", 3), args.integer("classes")) {}
  nn::Module& module() override { return *net_; }
  Step run(int, const std::vector<Tensor>& inputs) override {
    const Tensor logits = net_(inputs.at(0));
    return {cross_entropy(logits, inputs.at(1)), {logits}};
  }

 private:
  CNN net_;
};

const AddModel add_cnn("cnn", [](const Arguments& args) -> std::unique_ptr<Model> {
  return std::make_unique<CNNModel>(args);
});

}  // namespace
}  // namespace brigade::lab::reference
