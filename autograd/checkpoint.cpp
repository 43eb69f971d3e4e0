// The node of a checkpoint: runs the segment again with the old random state, then its backward.
#include <brigade/autograd/checkpoint.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/engine.h>
#include <brigade/autograd/record.h>
#include <brigade/autograd/tape.h>
#include <brigade/core/random.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>

namespace brigade::autograd {
namespace {

using Segment = std::function<Tensor(const std::vector<Tensor>&)>;

bool is_in(const std::vector<Tensor>& list, const Tensor& tensor) {
  return std::ranges::any_of(list, [&](const Tensor& each) { return each.is_same(tensor); });
}

// Up to 64 elements, spread evenly. Reads nothing back from the device.
Tensor sample_of(const Tensor& tensor) {
  const Tensor flat = view::flat(tensor.is_contiguous() ? tensor : kernels::clone(tensor));
  return kernels::clone(view::slice(flat, 0, 0, flat.numel(), std::max<int64_t>(1, flat.numel() / 64)));
}

// Up to rounding, which a fused kernel does otherwise; NaN is like anything.
bool are_alike(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double largest = 0, apart = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, std::abs(x[i]));
    apart = std::max(apart, std::abs(x[i] - y[i]));
  }
  return apart <= (itemsize(a.dtype()) < 4 ? 3e-2 : 1e-3) * largest;
}

struct CheckpointNode final : Node {
  Segment segment;
  size_t input_count = 0;
  std::unique_ptr<SavedTensor[]> saved;
  std::vector<Tensor> captured;    // other tensors that the segment used and that require grad: parameters, results
  RandomGenerator generator;       // its state when forward began
  AutocastState autocast;          // likewise
  std::vector<OpInfo> operations;  // of the first run
  Tensor sample;                   // of its result

  void backward(BackwardContext& context) override {
    std::vector<Tensor> inputs;
    std::vector<Tensor> wanted;
    std::vector<uint32_t> places;  // indices of this node's edges
    for (size_t i = 0; i < input_count; ++i) {
      const Tensor input = saved[i].unpack(*this);
      const bool wants_grad = context.needs_input_grad(static_cast<uint32_t>(i));
      if (context.create_graph() && wants_grad) {
        // Keep the history, but behind a separate node: the gradient of one input must not include paths through
        // another.
        inputs.push_back(input.expand(input.sizes(), where));
      } else {
        inputs.push_back(input.detach(where));
        if (wants_grad) inputs.back().requires_grad_(true, where);
      }
      if (!wants_grad) continue;
      wanted.push_back(inputs.back());
      places.push_back(static_cast<uint32_t>(i));
    }
    for (size_t i = 0; i < captured.size(); ++i) {
      wanted.push_back(captured[i]);
      places.push_back(static_cast<uint32_t>(input_count + i));
    }
    Tensor result;
    std::vector<Tensor> used;
    std::vector<OpInfo> operations_again;
    // The tape of this run explains an input that receives no gradient.
    const auto tape = !context.create_graph() && Tape::is_kept() ? std::make_shared<Tape>() : nullptr;
    {
      std::optional<Tape::Instead> recording;
      if (tape) recording.emplace(*tape);
      const RandomGenerator now = default_generator();
      default_generator() = generator;
      struct Restore {
        RandomGenerator state;
        ~Restore() { default_generator() = state; }
      } restore{now};
      const EnableGradGuard grad_on;
      // Use a separate cast cache: the casts of the first run have no history.
      AutocastState again = autocast;
      again.cache = std::make_shared<AutocastCache>();
      const AutocastScope as_before(again);
      InputCollector collector;
      result = segment(inputs);
      const Tensor* returned[] = {&result};
      if (result.defined()) detail::collect({.op = nullptr, .where = where}, returned);
      used = collector.inputs();
      std::erase_if(used, [&](const Tensor& each) { return is_in(inputs, each); });
      operations_again = collector.operations();
    }
    const Tensor& gradient = context.grad();
    if (!result.defined() || result.sizes() != gradient.sizes() || result.dtype() != gradient.dtype()) {
      throw AutogradError(where,
                          "checkpoint: the segment gave {} when it was run again, and {} before; it must compute the "
                          "same thing both times (recorded at {})",
                          result.defined() ? describe(result) : "nothing", describe(gradient), to_string(where));
    }
    check_alike(context, operations_again, used.size(), result);
    if (!result.requires_grad()) {  // the segment cut the graph: no gradient flows
      for (size_t i = 0; i < wanted.size(); ++i)
        note_stopped(tape, places[i], wanted[i], result);
      return;
    }
    const Tensor roots[] = {result};
    std::vector<Tensor> gradients =
        Engine(roots, std::span(&gradient, 1), {false, context.create_graph()}, where).run_captured(wanted, true);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!gradients[i].defined()) note_stopped(tape, places[i], wanted[i], result);
      context.set(places[i], std::move(gradients[i]));
    }
  }

  // A log or a cache may run other operations; they matter if they give other values or depend on other tensors.
  void check_alike(BackwardContext& context, const std::vector<OpInfo>& again, size_t used,
                   const Tensor& result) const {
    const auto [first, second] = std::ranges::mismatch(operations, again, [](const OpInfo& a, const OpInfo& b) {
      return std::string_view(a.op) == b.op && a.where.line() == b.where.line() &&
             std::string_view(a.where.file_name()) == b.where.file_name();
    });
    if (first == operations.end() && second == again.end()) return;
    if (used == captured.size() && are_alike(sample, sample_of(result))) return;
    const auto in_words = [](const std::vector<OpInfo>& run, auto at) -> std::string {
      return at == run.end() ? "nothing more" : std::string(at->op) + " at " + to_string(at->where);
    };
    context.fail_at_end(AutogradError(
        where,
        "checkpoint: the segment ran differently the second time: {} where the first run had {} (checkpoint at {}). Its "
        "gradients are wrong: make random choices before the checkpoint or from Brigade's generator, and pass decisions "
        "that may change in as inputs",
        in_words(again, second), in_words(operations, first), to_string(where)));
  }

  void note_stopped(const std::shared_ptr<const Tape>& tape, uint32_t input, const Tensor& wanted,
                    const Tensor& result) const {
    if (!tape) return;
    detail::stopped_gradients().in_segments.push_back(
        {sequence, input, tape, wanted.id(), BackwardOnTape(*tape, std::span(&result, 1)).trace(wanted.id())});
  }
};

}  // namespace

Tensor checkpoint(const Segment& segment, const std::vector<Tensor>& inputs, SourceLocation where) {
  const RandomGenerator generator = default_generator();
  if (!GradMode::is_enabled()) {
    Tensor result = segment(inputs);
    // An outer segment that runs again records this one as an operation.
    if (detail::input_collector) detail::collect({.op = "checkpoint", .where = where}, {});
    return result;
  }
  std::vector<Tensor> all = inputs;
  Tensor result;
  std::vector<OpInfo> operations;
  {
    const NoGradGuard no_grad(where);
    const Tape::Pause pause;  // the segment is one operation
    // Pass aliases without history: if the segment also captures an input itself, the collector finds the captured one.
    std::vector<Tensor> aliases;
    for (const Tensor& input : inputs)
      aliases.push_back(input.defined() ? view::alias(input) : input);
    InputCollector collector;
    result = segment(aliases);
    if (!result.defined()) throw AutogradError("checkpoint: the segment returned an undefined tensor", where);
    const Tensor* returned[] = {&result};
    detail::collect({.op = nullptr, .where = where}, returned);  // possibly no operation used it
    operations = collector.operations();
    all.insert(all.end(), collector.inputs().begin(), collector.inputs().end());
    // Copy an input that is returned unchanged: it would become a result of itself.
    if (is_in(aliases, result) || is_in(all, result)) result = kernels::clone(result);
  }
  std::vector<const Tensor*> in;
  for (const Tensor& tensor : all)
    in.push_back(&tensor);
  const Tensor* out[] = {&result};
  if (auto* node = record<CheckpointNode>({.op = "checkpoint", .where = where}, in, out)) {
    node->segment = segment;
    node->input_count = inputs.size();
    node->saved = std::make_unique<SavedTensor[]>(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      node->saved[i].save_input(*node, inputs[i]);
    node->captured.assign(all.begin() + static_cast<int64_t>(inputs.size()), all.end());
    node->generator = generator;
    node->autocast = autocast_now();
    node->operations = std::move(operations);
    node->sample = sample_of(result);
  }
  return result;
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& segment, const Tensor& input, SourceLocation where) {
  return checkpoint([segment](const std::vector<Tensor>& inputs) { return segment(inputs[0]); },
                    std::vector<Tensor>{input}, where);
}

}  // namespace brigade::autograd
