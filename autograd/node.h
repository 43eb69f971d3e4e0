// Node: one recorded operation, seen from backward.
//
// The forward of an operation makes a node with a sequence number above those of the nodes that made its
// inputs (detail/thread_state.h). Its edges say where the gradients of the inputs go: to the node that made
// the input, or to a leaf. Gradients flow from high numbers to low, so sorting by number is a valid order.
#pragma once

#include <brigade/autograd/grad_mode.h>
#include <brigade/core/inline_vector.h>
#include <brigade/core/tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brigade::autograd {

class Engine;
class GatheredGraph;
class Node;
class BackwardContext;
struct ScaleMark;
// Called when a node of a graph that a backward has retained is freed (see take_retained_graphs).
void note_freed(const Node& node) noexcept;
namespace detail {
struct PackedTensor;
struct DropPacked {
  void operator()(PackedTensor* packed) const noexcept;
};
}  // namespace detail
using NodePtr = IntrusivePtr<Node>;

// Where the gradient of an input goes: to output `output` of `node`, to `leaf`, or nowhere (the
// input needs none).
struct Edge {
  NodePtr node;
  TensorImplPtr leaf;
  uint32_t output = 0;

  bool defined() const noexcept { return node || leaf; }
};

// The required form of the gradient of an output.
struct OutputInfo {
  Shape sizes;
  DType dtype = DType::Float32;
  Device device;

  bool matches(const Tensor& grad) const {
    return grad.dtype() == dtype && grad.device() == device && grad.sizes() == sizes;
  }
};

// A tensor that forward keeps for backward. Remembers the version of the storage; unpack() throws
// AutogradError "one of the variables needed for gradient computation has been modified by an
// inplace operation" when it has changed since, naming the operation, its line and both versions.
class SavedTensor {
 public:
  SavedTensor() noexcept = default;
  SavedTensor(const SavedTensor&) = delete;
  SavedTensor& operator=(const SavedTensor&) = delete;

  // An undefined tensor is allowed and unpacks as undefined.
  void save_input(Node& owner, const Tensor& tensor);
  // For a result of `owner` itself: kept without its history, since owner and result would keep
  // each other alive otherwise.
  void save_output(Node& owner, const Tensor& tensor, uint32_t output = 0);
  Tensor unpack(Node& owner) const;

 private:
  friend class Node;
  void keep(Node& owner, const Tensor& tensor);

  Tensor tensor_;
  std::unique_ptr<detail::PackedTensor, detail::DropPacked> packed_;  // in its place, under saved-tensor hooks
  SavedTensor* next_ = nullptr;                                       // the owner's list, through which it frees them
  uint32_t version_ = 0;
  uint32_t output_ = 0;
  bool is_output_ = false;
  bool was_saved_ = false;
};

class Node : public GradFnBase {
 public:
  Node() noexcept = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Computes the gradients of the inputs from those of the outputs. `context` gives the latter
  // (some may be undefined: no gradient reached that output) and takes the former. Written with
  // differentiable operations wherever a second derivative is wanted.
  virtual void backward(BackwardContext& context) = 0;

  // A user-defined function: nothing is known about its derivative.
  virtual bool is_custom() const noexcept { return false; }

  // --- set when recorded
  const char* op = "";  // "relu"
  uint64_t sequence = 0;
  SourceLocation where;                 // the user's line
  uint32_t scope = 0;                   // module call on the tape, 0 when none
  bool adds_samples = false;            // a loss with Reduction::Sum
  InlineVector<Edge, 3> edges;          // one per input
  InlineVector<OutputInfo, 1> outputs;  // one per output

  // "ReluBackward"
  std::string name() const;
  // Drops the saved tensors. Afterwards is_freed() is true, if anything was saved.
  virtual void release_saved(SourceLocation freed_by) noexcept;
  bool is_freed() const noexcept { return freed_; }
  SourceLocation freed_by() const noexcept { return freed_by_; }

  // The effect on a loss's scale (gradient_scale.h); null: none.
  virtual const ScaleMark* scale_mark() const noexcept { return nullptr; }

  // Bytes of the saved tensors, leaves not counted.
  size_t saved_bytes() const noexcept;
  // Calls f(saved tensor) for each one that is still held.
  template <class F>
  void for_each_saved(F&& f) const;

  // Hooks on the gradients of the outputs, run before backward (Tensor::register_hook on a result).
  struct OutputHook {
    uint32_t output;
    uint64_t handle;
    std::function<Tensor(const Tensor&)> call;
  };
  std::unique_ptr<std::vector<OutputHook>> output_hooks;

 protected:
  void mark_freed(SourceLocation freed_by) noexcept {
    freed_ = true;
    freed_by_ = freed_by;
  }

 private:
  friend class SavedTensor;
  friend class GatheredGraph;
  friend class RetainedGraphs;
  friend void note_freed(const Node& node) noexcept;

  // Freeing a chain of any length does not recurse: nodes that die while another is being freed wait in a list.
  void destroy() const noexcept final;

  SavedTensor* saved_ = nullptr;
  mutable const Node* next_dying_ = nullptr;
  bool freed_ = false;
  SourceLocation freed_by_;
  // Place of this node in the backward that is running over it (0: none).
  uint64_t task_ = 0;
  uint32_t task_index_ = 0;
  uint32_t retained_by_ = 0;  // the backward that kept it (see take_retained_graphs)
};

template <class F>
void Node::for_each_saved(F&& f) const {
  for (const SavedTensor* saved = saved_; saved; saved = saved->next_) {
    if (saved->tensor_.defined()) f(saved->tensor_);
  }
}

// The interface between a node's backward and the engine.
class BackwardContext {
 public:
  // Gradient of output i; may be undefined.
  const Tensor& grad(uint32_t i = 0) const noexcept { return grads_[i]; }
  // The same, with zeros in place of an undefined one.
  Tensor grad_or_zeros(uint32_t i = 0) const;
  bool needs_input_grad(uint32_t i) const noexcept { return i < node_.edges.size() && node_.edges[i].defined(); }
  // Whether the gradients will be differentiated again. Then recording is on, unpacked tensors have their history,
  // write() gets no destination, and everything must be computed with differentiable operations.
  bool create_graph() const noexcept { return GradMode::is_enabled(); }
  // The shape of input i, which needs a gradient.
  const Shape& input_sizes(uint32_t i) const noexcept {
    const Edge& edge = node_.edges[i];
    return edge.node ? edge.node->outputs[edge.output].sizes : edge.leaf->sizes;
  }
  // Hands over the gradient of input i (undefined is allowed: no gradient).
  void set(uint32_t i, Tensor grad) { results_[i] = std::move(grad); }
  // The same for an input that was broadcast, promoted or moved in forward: sums, casts and moves back a gradient that
  // has the form of the result.
  void set_fitted(uint32_t i, Tensor grad) {
    const Edge& edge = node_.edges[i];
    if (edge.node && edge.node->outputs[edge.output].matches(grad)) {
      set(i, std::move(grad));
    } else {
      set(i, fit(edge, std::move(grad)));
    }
  }

  // Hands over the gradient of input i, unless it needs none, from `make(out, accumulate)`. `out` is the memory of the
  // leaf's gradient (a bucket of DDP), to be overwritten, or added to when `accumulate`: writing there directly saves a
  // copy. If there is no such memory, `out` is undefined, and the tensor that `make` returns is handed over as by
  // set_fitted().
  template <class Make>
  void write(uint32_t i, Make&& make) {
    if (!needs_input_grad(i)) return;
    const Destination to = destination(i);
    hand_over(i, to, make(to.out, to.accumulate));
  }
  // The same for two inputs whose gradients come from one kernel: `make` gets two destinations, each with `out` and
  // `accumulate`, and returns two tensors. It is called even if neither needs a gradient.
  template <class Make>
  void write(uint32_t i, uint32_t j, Make&& make) {
    const Destination first = destination(i);
    const Destination second = destination(j);
    auto [a, b] = make(first, second);
    if (needs_input_grad(i)) hand_over(i, first, std::move(a));
    if (needs_input_grad(j)) hand_over(j, second, std::move(b));
  }

  // The backward throws this once it has ended and its listeners found nothing worse.
  void fail_at_end(const AutogradError& error);

  // Runs the backward of `inner` within this one; it reads its gradients from `grads` and writes to `results`.
  void run_inside(Node& inner, const Tensor* grads, std::vector<Tensor>& results);

 private:
  friend class Engine;
  BackwardContext(Engine& engine, Node& node, const Tensor* grads, std::vector<Tensor>& results) noexcept
      : engine_(engine), node_(node), grads_(grads), results_(results) {}

  static Tensor fit(const Edge& edge, Tensor grad);

  struct Destination {
    Tensor out;
    bool accumulate = false;
  };
  Destination destination(uint32_t i) const;
  // `result` is in the destination if there is one.
  void hand_over(uint32_t i, const Destination& to, Tensor result);

  Engine& engine_;
  Node& node_;
  const Tensor* grads_;
  std::vector<Tensor>& results_;
};

}  // namespace brigade::autograd
