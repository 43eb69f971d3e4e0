// Stacks examples with one copy each, after checking their shapes and dtypes.
#include <brigade/data/dataset.h>

#include <brigade/core/view.h>
#include <brigade/kernels/indexing.h>

namespace brigade::data {
namespace {

Tensor stacked(const std::vector<Tensor>& tensors, const char* what) {
  const Tensor& first = tensors.front();
  std::vector<Tensor> rows;
  rows.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& each = tensors[i];
    if (!each.defined()) {
      throw ValueError("default_collate: example {} of the batch has no {}; give one to all examples or to none", i,
                       what);
    }
    if (each.requires_grad()) {
      throw ValueError("default_collate: the {} of example {} of the batch requires grad; detach() it in the dataset",
                       what, i);
    }
    constexpr const char* kAdvice = "give all examples one shape, dtype and device, or give the DataLoader a collate";
    if (each.sizes() != first.sizes()) {
      throw ShapeError("default_collate: the {} of example {} of the batch is {}, of the first {}; {}", what, i,
                       describe(each), describe(first), kAdvice);
    }
    if (each.dtype() != first.dtype()) {
      throw DTypeError("default_collate: the {} of example {} of the batch is {}, of the first {}; {}", what, i,
                       describe(each), describe(first), kAdvice);
    }
    if (each.device() != first.device()) {
      throw DeviceError("default_collate: the {} of example {} of the batch is {}, of the first {}; {}", what, i,
                        describe(each), describe(first), kAdvice);
    }
    rows.push_back(view::unsqueeze(each, 0));
  }
  return kernels::cat(rows, 0);
}

}  // namespace

Tensor default_collate(const std::vector<Tensor>& examples) {
  if (examples.empty()) throw ValueError("default_collate: expected at least one example, got none");
  return stacked(examples, "tensor");
}

Example default_collate(const std::vector<Example>& examples) {
  if (examples.empty()) throw ValueError("default_collate: expected at least one example, got none");
  std::vector<Tensor> data, targets;
  bool any_target = false;
  for (const Example& each : examples) {
    data.push_back(each.data);
    targets.push_back(each.target);
    any_target = any_target || each.target.defined();
  }
  return {stacked(data, "data"), any_target ? stacked(targets, "target") : Tensor()};
}

}  // namespace brigade::data
