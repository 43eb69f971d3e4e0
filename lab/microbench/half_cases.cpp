// The cost of half types per element: operations over four million elements in float16 and bfloat16 compared with
// float32, and casts compared with a copy.
#include <brigade/autograd/functional.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/normalization.h>
#include <brigade/lab/microbench/micro_case.h>

namespace brigade::lab {
namespace {

constexpr int64_t kRows = 4096, kRow = 1024;
constexpr DType kTypes[] = {kFloat32, kFloat16, kBFloat16};

// The gradients of x, weight and bias of a layer norm, or of x and weight of an RMS norm. Returns that of x.
Tensor norm_gradient(const Tensor& x, bool centered) {
  const kernels::ParameterGrad wanted{.wanted = true, .dtype = x.dtype()};
  const kernels::LayerNormBackwardOptions options{
      .normalized_shape = {kRow}, .weight = wanted, .bias = centered ? wanted : kernels::ParameterGrad()};
  const Tensor weight = ones({kRow}, x.dtype());
  const Tensor rstd = ones({kRows});
  if (!centered) return kernels::rms_norm_backward(x, x, weight, rstd, options).x;
  return kernels::layer_norm_backward(x, x, weight, zeros({kRows}), rstd, options).x;
}

struct Operation {
  std::string name;
  std::function<Tensor(const Tensor&)> run;
};

std::vector<Operation> operations() {
  return {
      {"add", [](const Tensor& x) { return x + x; }},
      {"mul by a number", [](const Tensor& x) { return x * 1.5; }},
      {"exp", [](const Tensor& x) { return exp(x); }},
      {"relu", [](const Tensor& x) { return relu(x); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"tanh", [](const Tensor& x) { return tanh(x); }},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
      {"silu", [](const Tensor& x) { return silu(x); }},
      {"softmax", [](const Tensor& x) { return softmax(x, -1); }},
      {"log_softmax", [](const Tensor& x) { return log_softmax(x, -1); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, {kRow}); }},
      {"rms_norm", [](const Tensor& x) { return rms_norm(x, {kRow}); }},
      {"sum", [](const Tensor& x) { return sum(x); }},
      {"sum of rows", [](const Tensor& x) { return sum(x, {1}); }},
      {"sum of columns", [](const Tensor& x) { return sum(x, {0}); }},
      {"mean", [](const Tensor& x) { return mean(x); }},
      {"amax of rows", [](const Tensor& x) { return amax(x, {1}); }},
      {"amax of columns", [](const Tensor& x) { return amax(x, {0}); }},
      {"max of rows", [](const Tensor& x) { return max(x, 1).values; }},
      {"norm of rows", [](const Tensor& x) { return norm(x, 2, {1}); }},
      {"norm of columns", [](const Tensor& x) { return norm(x, 2, {0}); }},
      {"var of rows", [](const Tensor& x) { return var(x, {1}); }},
      {"var of columns", [](const Tensor& x) { return var(x, {0}); }},
      {"prod of rows", [](const Tensor& x) { return prod(x, {1}); }},
      {"softmax of columns", [](const Tensor& x) { return softmax(x, 0); }},
      {"cumsum", [](const Tensor& x) { return cumsum(x, 1); }},
      {"softmax backward", [](const Tensor& x) { return kernels::softmax_backward(x, x, 1); }},
      {"log_softmax backward", [](const Tensor& x) { return kernels::log_softmax_backward(x, x, 1); }},
      {"gelu backward", [](const Tensor& x) { return kernels::gelu_backward(x, x, false); }},
      {"layer_norm backward", [](const Tensor& x) { return norm_gradient(x, true); }},
      {"rms_norm backward", [](const Tensor& x) { return norm_gradient(x, false); }},
  };
}

Tensor input(DType dtype) {
  RandomGenerator generator(1);
  return randn({kRows, kRow}, {}, &generator).to(dtype);
}

MicroCase operation_case(const Operation& operation, DType dtype) {
  const std::string title = operation.name + " 4096x1024 ";
  return {.suite = "amp",
          .name = title + name(dtype),
          .dtype = name(dtype),
          .prepare = [run = operation.run, dtype]() -> std::function<double()> {
            return repeated([run, x = input(dtype)] {
              const NoGradGuard no_grad;
              run(x);
            });
          },
          .beside = dtype == kFloat32 ? "" : title + name(kFloat32)};
}

std::string cast_name(DType from, DType to) { return std::string("cast ") + name(from) + " to " + name(to); }

// Casts into memory that is already allocated.
MicroCase cast_case(DType from, DType to) {
  return {.suite = "amp",
          .name = from == to ? "copy float32" : cast_name(from, to),
          .dtype = name(to),
          .bytes = static_cast<double>(kRows * kRow) * static_cast<double>(itemsize(from) + itemsize(to)),
          .prepare = [from, to]() -> std::function<double()> {
            return repeated([in = input(from), out = zeros({kRows, kRow}, to)] { kernels::copy(out, in); });
          },
          .beside = from == to ? "" : "copy float32"};
}

std::vector<MicroCase> cases() {
  std::vector<MicroCase> all;
  for (const Operation& operation : operations()) {
    for (const DType dtype : kTypes)
      all.push_back(operation_case(operation, dtype));
  }
  all.push_back(cast_case(kFloat32, kFloat32));
  for (const DType from : kTypes) {
    for (const DType to : kTypes) {
      if (from != to) all.push_back(cast_case(from, to));
    }
  }
  return all;
}

const AddMicroCases add_half_cases(&cases);

}  // namespace
}  // namespace brigade::lab
