// A chain of nodes, one for each parameter.
#include <brigade/lab/bench/bucket/given_gradients.h>

#include <brigade/autograd/record.h>
#include <brigade/core/error.h>
#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <memory>
#include <thread>

namespace brigade::lab::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct GiveNode final : autograd::Node {
  Tensor gradient;
  Gives gives = Gives::Writes;
  // When backward began: set by the first node, shared by all.
  std::shared_ptr<Clock::time_point> began;
  bool is_first = false;
  std::chrono::nanoseconds at{0};  // delay after `began` until its gradient is ready

  void backward(autograd::BackwardContext& context) override {
    if (is_first) *began = Clock::now();
    if (at.count() > 0) std::this_thread::sleep_until(*began + at);
    if (context.needs_input_grad(0)) context.set(0, context.grad());
    if (gives == Gives::Hands) return context.set(1, kernels::clone(gradient));
    context.write(1, [this](const Tensor& out, bool) {
      if (!out.defined()) return kernels::clone(gradient);
      kernels::copy(out, gradient);
      return out;
    });
  }
};

}  // namespace

int64_t numel_of_each(int64_t bytes, int64_t count, DType dtype) noexcept {
  return bytes / count / static_cast<int64_t>(itemsize(dtype));
}

GivenGradientsImpl::GivenGradientsImpl(const GivenGradientsOptions& given) : options(given) {
  const int64_t numel = numel_of_each(options.bytes, options.count, options.dtype);
  if (numel < 1)
    throw ValueError("{} parameters of {} do not fit into {} bytes", options.count, brigade::name(options.dtype),
                     options.bytes);
  p = register_module("p", nn::ParameterList());
  RandomGenerator generator(options.seed);
  for (int64_t i = 0; i < options.count; ++i) {
    p->push_back(zeros({numel}, options.dtype));
    gradients.push_back(randn({numel}, options.dtype, &generator));
  }
}

int64_t GivenGradientsImpl::bytes() const noexcept {
  return options.count * numel_of_each(options.bytes, options.count, options.dtype) *
         static_cast<int64_t>(itemsize(options.dtype));
}

Tensor GivenGradientsImpl::forward(const Tensor&) {
  Tensor y = zeros({1}, options.dtype);
  const auto began = std::make_shared<Clock::time_point>();
  const auto last = static_cast<int64_t>(p->size()) - 1;
  for (int64_t i = 0; i <= last; ++i) {
    const auto index = static_cast<size_t>(i);
    const Tensor next = zeros({1}, options.dtype);
    if (auto* node = autograd::record<GiveNode>({.op = "give"}, {y, (*p)[index]}, next)) {
      node->gradient = gradients[index];
      node->gives = options.gives;
      node->began = began;
      node->is_first = i == last;  // backward begins at the end
      node->at = options.compute * (last + 1 - i) / (last + 1);
    }
    y = next;
  }
  return y;
}

}  // namespace brigade::lab::bench
