// A U-Net of two levels with a skip connection and deep supervision: the lower level has its own head and loss.
#include <brigade/autograd/functional.h>
#include <brigade/lab/reference/models/conv_norm.h>
#include <brigade/lab/reference/models/model.h>
#include <brigade/nn/nn.h>

namespace brigade::lab::reference {
namespace {

struct UNetImpl : nn::Module {
  ConvNorm down{nullptr}, bottom{nullptr}, up{nullptr};
  nn::Conv2d head{nullptr}, deep_head{nullptr};
  explicit UNetImpl(const Shape& channels) {
    const int64_t image = channels[0], wide = channels[1], deep = channels[2];
    down = register_module("down", ConvNorm(image, wide));
    bottom = register_module("bottom", ConvNorm(wide, deep));
    up = register_module("up", ConvNorm(deep + wide, wide));
    head = register_module("head", nn::Conv2d(wide, 1, 1));
    deep_head = register_module("deep_head", nn::Conv2d(deep, 1, 1));
  }
  // Returns the output, and the output of the lower level.
  std::vector<Tensor> forward(const Tensor& x) {
    const Tensor skip = down(x);
    const Tensor low = bottom(max_pool2d(skip, 2));
    const Tensor large = interpolate(low, {.scale_factor = {{2, 2}}, .mode = InterpolateMode::Bilinear});
    return {head(up(cat({large, skip}, 1))), interpolate(deep_head(low), {.scale_factor = {{2, 2}}})};
  }
};
BRIGADE_MODULE(UNet);

class UNetModel final : public Model {
 public:
  explicit UNetModel(const Arguments& args) : net_(args.shape_of("channels", 3)) {}
  nn::Module& module() override { return *net_; }
  Step run(int, const std::vector<Tensor>& inputs) override {
    const Tensor target = inputs.at(1).to(inputs.at(0).dtype());
    const std::vector<Tensor> outputs = net_(inputs[0]);
    return {binary_cross_entropy_with_logits(outputs[0], target) +
                0.4 * binary_cross_entropy_with_logits(outputs[1], target),
            outputs};
  }

 private:
  UNet net_;
};

const AddModel add_unet("unet", [](const Arguments& args) -> std::unique_ptr<Model> {
  return std::make_unique<UNetModel>(args);
});

}  // namespace
}  // namespace brigade::lab::reference
