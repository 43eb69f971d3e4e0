// Layers in all their forms, and the faults of a forward, with the line of each.
#include "net.h"

#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/function.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace brigade::test::fuzz {
namespace {

struct OwnTanh : autograd::Function<OwnTanh> {
  static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x) {
    const Tensor y = brigade::tanh(x);
    ctx.save_for_backward({y});
    return y;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext& ctx, const std::vector<Tensor>& grads) {
    const Tensor y = ctx.get_saved_variables()[0];
    return {grads[0] * (1.0 - y * y)};
  }
};

Tensor on_a_thread(const Tensor& sums) {
  Tensor out;
  std::thread([&] { out = brigade::tanh(sums); }).join();
  return out;
}

Tensor formed(Form form, const Tensor& sums) {
  switch (form) {
    case Form::Tanh: return brigade::tanh(sums);
    case Form::Custom: return OwnTanh::apply(sums);
    case Form::Sorted: return sort(brigade::tanh(sums), 1).values;
    case Form::Split: {
      const std::vector<Tensor> parts = chunk(sums, kWidth, 1);
      return brigade::tanh(cat({parts[2], parts[0], parts[1]}, 1));
    }
    case Form::Scaled: return brigade::tanh(sums) * (1 + 0.1 * mean(sums.detach()).item<double>());
    case Form::Thread: return on_a_thread(sums);
  }
  return {};
}

}  // namespace

bool Now::does(Extra extra) const {
  return std::any_of(spec.beside.begin(), spec.beside.end(),
                     [&](const Beside& each) { return !plain && each.what == extra && (each.ranks >> rank & 1U); });
}

bool Now::does(Extra extra, size_t layer) const {
  return std::any_of(spec.beside.begin(), spec.beside.end(), [&](const Beside& each) {
    return !plain && each.what == extra && each.layer == layer && (each.ranks >> rank & 1U);
  });
}

UnitImpl::UnitImpl(Kind kind) : kind(kind) {
  switch (kind) {
    case Kind::Linear:
    case Kind::Affine:
      weight = register_parameter("weight", kind == Kind::Linear ? randn({kWidth, kWidth}) : ones({kWidth}));
      bias = register_parameter("bias", zeros({kWidth}));
      break;
    case Kind::Adapter:
      base = register_module("base", nn::Linear(kWidth, kWidth));
      down = register_module("down", nn::Linear(kWidth, 2, false));
      up = register_module("up", nn::Linear(2, kWidth, false));
      base->requires_grad_(false);
      break;
    case Kind::Experts:
      first = register_module("first", nn::Linear(kWidth, kWidth));
      second = register_module("second", nn::Linear(kWidth, kWidth));
      gate = register_module("gate", nn::Linear(kWidth, 1, false));
      break;
  }
  to(kFloat64);
}

Tensor UnitImpl::forward(const Tensor& x, bool idle) {
  switch (kind) {
    case Kind::Linear: return linear(x, weight, bias);
    case Kind::Affine: return x * weight + bias;
    case Kind::Adapter: return base(x) + up(down(x));
    case Kind::Experts: break;
  }
  const Tensor share = sigmoid(gate(x));
  const Tensor out = share * first(x);
  return idle ? out : out + (1.0 - share) * second(x);
}

Tensor UnitImpl::marked() const {
  return kind == Kind::Adapter ? up->weight : kind == Kind::Experts ? gate->weight : weight;
}

NetImpl::NetImpl(const Spec& spec) {
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if (spec.layers[i].module == i) {
      layers.push_back(register_module(fmt::format("layer{}", i), Unit(spec.layers[i].kind)));
    } else {
      layers.push_back(layers[spec.layers[i].module]);
    }
  }
  for (const size_t module : spec.frozen)
    layers[module]->requires_grad_(false);
}

CriticImpl::CriticImpl(const Spec& spec, const Net& net) {
  own = register_module("own", nn::Linear(kWidth, kWidth));
  own->to(kFloat64);
  if (spec.shared) shared = register_module("shared", net->layers[*spec.shared]);
}

void NetImpl::replace(size_t module) {
  const Unit fresh(now->spec.layers[module].kind);
  now->blame_next_line({Fault::ReplacedLayer, Fault::ReplacedBefore});
  const Unit placed = replace_module(fmt::format("layer{}", module), fresh);
  for (size_t i = 0; i < layers.size(); ++i) {
    if (now->spec.layers[i].module == module) layers[i] = placed;
  }
}

std::vector<Tensor> NetImpl::forward(const Tensor& x) {
  std::vector<Tensor> nodes{x};
  const Spec& spec = now->spec;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const bool throws =
        now->evaluates ? now->fails : now->is_faulty(Fault::Exception, i) || now->is_faulty(Fault::CaughtException, i);
    if (throws) throw BadSample();
    nodes.push_back(result_of(i, nodes[spec.layers[i].input]));
    look_at(i, nodes.back());
  }
  std::vector<Tensor> heads;
  for (const size_t head : spec.heads)
    heads.push_back(now->is_faulty(Fault::DroppedHead, head) ? Tensor() : nodes[head]);
  return heads;
}

Tensor NetImpl::result_of(size_t i, const Tensor& in) {
  const Layer& layer = now->spec.layers[i];
  if (now->is_faulty(Fault::SkippedLayer, i)) return in;
  if (now->is_faulty(Fault::NoGradLayer, i)) {
    now->blame_next_line({Fault::NoGradLayer});
    const NoGradGuard no_grad;
    return brigade::tanh(layers[i](in));
  }
  const bool dropped = now->is_faulty(Fault::DroppedHead, i + 1);
  Tensor out;
  if (layer.checkpointed) {
    const bool idle = now->is_faulty(Fault::IdleExpert, i);
    if (dropped) now->blame_next_line({Fault::DroppedHead});
    out = autograd::checkpoint([this, i, idle](const Tensor& x) { return brigade::tanh(layers[i]->forward(x, idle)); },
                               in);
  } else {
    const Tensor sums = layers[i](in, now->is_faulty(Fault::IdleExpert, i));
    // A dropped result is made on a single line.
    if (dropped) now->blame_next_line({Fault::DroppedHead});
    out = dropped ? brigade::tanh(sums) : formed(layer.form, sums);
  }
  if (now->is_faulty(Fault::DetachedResult, i)) {
    now->blame_next_line({Fault::DetachedResult});
    out = out.detach();
  }
  if (now->is_faulty(Fault::Threshold, i)) {
    now->blame_next_line({Fault::Threshold});
    out = gt(out, zeros_like(out)).to(kFloat64);
  }
  if (now->is_faulty(Fault::ReadAsNumber, i)) {
    now->blame_next_line({Fault::ReadAsNumber});
    const Tensor whole = mean(out);
    out = full_like(out.detach(), i % 2 == 0 ? whole.item<double>() : whole.to_vector<double>().front());
  }
  return out;
}

void NetImpl::look_at(size_t i, const Tensor& result) const {
  if (now->does(Extra::LogResult, i)) mean(result.detach()).item<double>();
  if (now->does(Extra::LogResult, i) && i % 2 == 1) result.to_vector<double>();
  if (now->does(Extra::Metric, i)) {
    const NoGradGuard no_grad;
    mean(square(result)).item<double>();
  }
}

}  // namespace brigade::test::fuzz
