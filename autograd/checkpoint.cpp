// The node of a checkpoint: runs the segment again with the old random state, then its backward.
#include <brigade/autograd/checkpoint.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/engine.h>
#include <brigade/autograd/record.h>
#include <brigade/autograd/tape.h>
#include <brigade/core/random.h>
#include <brigade/core/view.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace brigade::autograd {

namespace {

using Segment = std::function<Tensor(const std::vector<Tensor>&)>;

struct CheckpointNode final : Node {
  Segment segment;
  size_t input_count = 0;
  std::unique_ptr<SavedTensor[]> saved;
  std::vector<Tensor> captured;  // other tensors that the segment used and that require grad: parameters, results
  RandomGenerator generator;     // its state when forward began
  AutocastState autocast;        // likewise

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
      result = segment(inputs);
    }
    const Tensor& gradient = context.grad();
    if (!result.defined() || result.sizes() != gradient.sizes() || result.dtype() != gradient.dtype()) {
      throw AutogradError(where,
                          "checkpoint: the segment gave {} when it was run again, and {} before; it must compute the "
                          "same thing both times (recorded at {})",
                          result.defined() ? describe(result) : "nothing", describe(gradient), to_string(where));
    }
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
  if (!GradMode::is_enabled()) return segment(inputs);
  std::vector<Tensor> all = inputs;
  Tensor result;
  {
    const NoGradGuard no_grad(where);
    const Tape::Pause pause;  // the segment is one operation
    // Pass aliases without history: if the segment also captures an input itself, the collector finds the captured one.
    std::vector<Tensor> aliases;
    for (const Tensor& input : inputs)
      aliases.push_back(input.defined() ? view::alias(input) : input);
    const auto is_in = [](const std::vector<Tensor>& list, const Tensor& tensor) {
      return std::ranges::any_of(list, [&](const Tensor& each) { return each.is_same(tensor); });
    };
    InputCollector collector;
    result = segment(aliases);
    if (!result.defined()) throw AutogradError("checkpoint: the segment returned an undefined tensor", where);
    const Tensor* returned[] = {&result};
    detail::collect_inputs(returned);  // possibly no operation used it
    all.insert(all.end(), collector.inputs().begin(), collector.inputs().end());
    // Copy an input that is returned unchanged: it would become a result of itself.
    if (is_in(aliases, result) || is_in(all, result)) result = result.clone(where).detach(where);
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
  }
  return result;
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& segment, const Tensor& input, SourceLocation where) {
  return checkpoint([segment](const std::vector<Tensor>& inputs) { return segment(inputs[0]); },
                    std::vector<Tensor>{input}, where);
}

}  // namespace brigade::autograd
