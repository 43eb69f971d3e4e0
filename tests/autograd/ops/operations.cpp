#include "operations.h"

#include <brigade/autograd/backward.h>
#include <brigade/autograd/meta.h>
#include <brigade/kernels/factory.h>

#include <filesystem>
#include <fstream>
#include <regex>

namespace brigade::test {
namespace {

void collect(const autograd::Node* node, std::set<const autograd::Node*>& seen, std::set<std::string>& names) {
  if (!node || !seen.insert(node).second) return;
  names.insert(node->op);
  for (const autograd::Edge& edge : node->edges)
    collect(edge.node.get(), seen, names);
}

}  // namespace

void collect_operations(const Tensor& tensor, std::set<std::string>& names) {
  std::set<const autograd::Node*> seen;
  collect(autograd::grad_fn(tensor), seen, names);
}

void collect_operations_of_gradients(const Tensor& result, std::span<const Tensor> inputs,
                                     std::set<std::string>& names) {
  std::vector<Tensor> wanted;
  for (const Tensor& input : inputs) {
    if (input.requires_grad()) wanted.push_back(input);
  }
  const Tensor weight = full(result.sizes(), 1.0, result.options()).requires_grad_();
  const Tensor outputs[] = {result};
  for (const Tensor& gradient :
       autograd::grad(outputs, wanted,
                      {.grad_outputs = {weight}, .retain_graph = true, .allow_unused = true, .create_graph = true})) {
    if (gradient.defined()) collect_operations(gradient, names);
  }
}

std::set<std::string> differentiable_operations() {
  const std::filesystem::path sources = std::filesystem::path(BRIGADE_SOURCE_DIR) / "autograd/ops";
  if (!std::filesystem::exists(sources)) throw ValueError("there is no folder " + sources.string());
  // Every literal `.op = "name"` and every name passed to a helper that makes nodes.
  const std::regex literal(
      "(?:\\.op = "
      "|unary<\\w+>\\(|with_number\\(|reduce\\(|extremum\\(|apply(?:<\\w+>)?\\(|choose\\(|activate\\(|pair_loss<\\w+>"
      "\\(|viewed\\(|matmul_at_least_"
      "2d\\()\"(\\w+)\"");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(sources)) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (line.find(".differentiable = false") != std::string::npos || line.find("compare(") != std::string::npos)
        continue;
      for (std::sregex_iterator match(line.begin(), line.end(), literal), end; match != end; ++match)
        names.insert((*match)[1]);
    }
  }
  return names;
}

}  // namespace brigade::test
