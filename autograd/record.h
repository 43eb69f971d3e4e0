// record(): the single call that adds an operation to the graph and the tape.
//
//   Tensor relu(const Tensor& x, SourceLocation where) {
//     Tensor y = kernels::relu(x);
//     if (auto* node = autograd::record<ReluNode>({.op = "relu", .where = where}, {x}, y))
//       node->y.save_output(*node, y);
//     return y;
//   }
//
// A node is made when recording is on and an input requires grad. The tape, if on, records the operation in any case.
#pragma once

#include <brigade/autograd/meta.h>
#include <brigade/autograd/node.h>
#include <brigade/autograd/tape.h>
#include <brigade/autograd/views.h>
#include <brigade/autograd/write_log.h>

#include <initializer_list>
#include <span>
#include <vector>

namespace brigade::autograd {

// The description of an operation.
struct OpInfo {
  const char* op;              // "relu"; a string literal
  SourceLocation where;        // the user's line
  bool differentiable = true;  // false: argmax, comparisons, casts to integers
};

// A borrowed list of inputs or outputs; undefined tensors are allowed among the inputs.
using TensorRefs = std::span<const Tensor* const>;

class InputCollector;

namespace detail {
BRIGADE_INITIAL_EXEC inline constinit thread_local InputCollector* input_collector = nullptr;  // the innermost
bool any_requires_grad(TensorRefs inputs) noexcept;
// Sets the sequence number, edges and output infos, and makes the outputs results of `made`, taking over one reference
// to it.
void attach(Node* made, const OpInfo& info, TensorRefs inputs, TensorRefs outputs);
// Appends to the tape, if it is on.
void note(const OpInfo& info, TensorRefs inputs, TensorRefs outputs);
// Hands the operation to the InputCollectors of this thread; without a name, only its inputs.
void collect(const OpInfo& info, TensorRefs inputs);
}  // namespace detail

// RAII: collects the operations that run, and the tensors that require grad and that they use, except tensors recorded
// after the collector was created. Activation checkpointing uses this to find what a segment depends on besides its
// inputs, and whether it runs alike again. Nests: an inner collector hides the inputs, not the operations, from the
// outer one.
class InputCollector {
 public:
  InputCollector() noexcept;
  ~InputCollector();
  InputCollector(const InputCollector&) = delete;
  InputCollector& operator=(const InputCollector&) = delete;
  // The collected tensors, each once, in the order of first use.
  const std::vector<Tensor>& inputs() const noexcept { return inputs_; }
  // The first kMaxOperations operations.
  const std::vector<OpInfo>& operations() const noexcept { return operations_; }
  static constexpr size_t kMaxOperations = 512;

 private:
  friend void detail::collect(const OpInfo& info, TensorRefs inputs);
  std::vector<Tensor> inputs_;
  std::vector<OpInfo> operations_;
  uint64_t began_;  // the number of this thread's next node at construction
  InputCollector* outer_;
};

template <class N>
N* record(const OpInfo& info, TensorRefs inputs, TensorRefs outputs) {
  N* node = nullptr;
  if (detail::input_collector) [[unlikely]]
    detail::collect(info, inputs);
  if (GradMode::is_enabled() && info.differentiable && detail::any_requires_grad(inputs)) {
    node = new N;
    node->retain_new();
    detail::attach(node, info, inputs, outputs);  // the outputs keep the node alive
  }
  if (Tape::current()) detail::note(info, inputs, outputs);
  return node;
}

template <class N>
N* record(const OpInfo& info, std::initializer_list<std::reference_wrapper<const Tensor>> inputs,
          const Tensor& output) {
  const Tensor* in[8];
  size_t count = 0;
  for (const Tensor& input : inputs)
    in[count++] = &input;
  const Tensor* out[] = {&output};
  return record<N>(info, TensorRefs(in, count), TensorRefs(out, 1));
}

// For an operation without a derivative: it goes on the tape, and no node is made.
void record_without_node(const OpInfo& info, std::initializer_list<std::reference_wrapper<const Tensor>> inputs,
                         const Tensor& output);

// Call after an in-place write: bumps the version and, if a node is needed, makes `self` its result. `inputs` starts
// with self, whose old history becomes an input of the node. Call check_inplace() before the write.
template <class N>
N* record_inplace(const OpInfo& info, std::initializer_list<std::reference_wrapper<const Tensor>> inputs,
                  const Tensor& self) {
  self.bump_version();
  note_write(self, info.op, info.where);
  OpInfo how = info;
  how.differentiable = info.differentiable && is_floating_point(self.dtype());  // integers have no history
  N* const node = record<N>(how, inputs, self);
  if (node) rebase_history(self, *node);
  return node;
}

}  // namespace brigade::autograd
