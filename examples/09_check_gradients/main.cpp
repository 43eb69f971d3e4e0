// Compares the gradients of a custom module with those of another program: docs/check.md describes the file and how to
// write it from PyTorch.
//
//   09_check_gradients step.safetensors            compares; exits with status 1 on a mismatch
//   09_check_gradients --write step.safetensors    writes such a file, with this program's own values
#include <brigade/brigade.h>

#include <iostream>
#include <string>

using namespace brigade;

struct NetImpl : nn::Module {
  nn::Linear fc1{nullptr}, fc2{nullptr};
  NetImpl() {
    fc1 = register_module("fc1", nn::Linear(4, 8));
    fc2 = register_module("fc2", nn::Linear(8, 3));
  }
  Tensor forward(const Tensor& x) { return fc2(brigade::tanh(fc1(x))); }
};
BRIGADE_MODULE(Net);

int main(int argc, char** argv) {
  Net net;
  const auto loss = [&](const std::vector<Tensor>& inputs) { return cross_entropy(net(inputs[0]), inputs[1]); };

  if (argc == 3 && std::string(argv[1]) == "--write") {
    manual_seed(0);
    const std::vector<Tensor> inputs = {randn({5, 4}), randint(0, 3, {5})};
    const Tensor value = loss(inputs);
    value.backward();
    check::NamedTensors tensors{{"input.0", inputs[0]}, {"input.1", inputs[1]}, {"loss", value.detach()}};
    for (const auto& [name, tensor] : net->state_dict())
      tensors.emplace_back("parameter." + name, tensor);
    for (const auto& [name, parameter] : net->named_parameters())
      tensors.emplace_back("grad." + name, parameter.grad());
    save_safetensors(argv[2], tensors);
    return 0;
  }
  if (argc != 2) {
    std::cerr << "usage: 09_check_gradients [--write] FILE.safetensors\n";
    return 2;
  }
  try {
    const check::Report report = check::run(argv[1], *net, loss);
    std::cout << report.table();
    return report.passed() ? 0 : 1;
  } catch (const Error& error) {
    std::cerr << "09_check_gradients: " << error.what() << "\n";
    return 2;
  }
}
