// Operations at the sizes of models: forward without recording, and the gradients of all inputs. All run in
// float32; those that models run in half types also run in these ("softmax 1024x1024 bfloat16 forward").
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/microbench/micro_case.h>

namespace brigade::lab {
namespace {

using Inputs = std::vector<Tensor>;

struct Operation {
  std::string name;
  double flops;  // of forward
  double bytes;  // that forward must move
  std::function<Inputs()> inputs;
  std::function<Tensor(const Inputs&)> apply;
  double backward_flops = 0;
  DType dtype = kFloat32;
  std::string in_float32 = "";  // in a half type: the name of the float32 case
};

Tensor random(const Shape& sizes, uint64_t seed = 1) {
  RandomGenerator generator(seed);
  return randn(sizes, {}, &generator).requires_grad_();
}

Operation product(int64_t m, int64_t k, int64_t n, const std::string& name) {
  const double flops = 2.0 * static_cast<double>(m * k * n);
  return {name,
          flops,
          4.0 * static_cast<double>(m * k + k * n + m * n),
          [=] {
            return Inputs{random({m, k}), random({k, n}, 2)};
          },
          [](const Inputs& in) { return matmul(in[0], in[1]); },
          2 * flops};
}

std::vector<Operation> operations() {
  std::vector<Operation> all;
  for (const int64_t n : {64, 128, 256, 512, 1024})
    all.push_back(product(n, n, n, "matmul " + std::to_string(n)));
  all.push_back({"linear 64x784x1024", 2.0 * 64 * 784 * 1024, 4.0 * (64 * 784 + 784 * 1024 + 64 * 1024),
                 [] {
                   return Inputs{random({64, 784}), random({1024, 784}, 2), random({1024}, 3)};
                 },
                 [](const Inputs& in) { return linear(in[0], in[1], in[2]); }, 4.0 * 64 * 784 * 1024});
  all.push_back({"bmm 64x128x64x128", 2.0 * 64 * 128 * 64 * 128, 4.0 * 64 * (2 * 128 * 64 + 128 * 128),
                 [] {
                   return Inputs{random({64, 128, 64}), random({64, 64, 128}, 2)};
                 },
                 [](const Inputs& in) { return bmm(in[0], in[1]); }, 4.0 * 64 * 128 * 64 * 128});
  const double conv = 2.0 * 8 * 64 * 64 * 9 * 56 * 56;
  all.push_back({"conv2d 64 3x3 56x56", conv, 4.0 * (2 * 8 * 64 * 56 * 56 + 64 * 64 * 9),
                 [] {
                   return Inputs{random({8, 64, 56, 56}), random({64, 64, 3, 3}, 2)};
                 },
                 [](const Inputs& in) {
                   return conv2d(in[0], in[1], {}, {.padding = {1, 1}});
                 },
                 2 * conv});
  const double attention = 4.0 * 4 * 8 * 512 * 512 * 64;
  for (const bool causal : {false, true}) {
    all.push_back(
        {causal ? "attention causal 4x8x512x64" : "attention 4x8x512x64", causal ? attention / 2 : attention,
         4.0 * 4 * 4 * 8 * 512 * 64,
         [] {
           return Inputs{random({4, 8, 512, 64}), random({4, 8, 512, 64}, 2), random({4, 8, 512, 64}, 3)};
         },
         [causal](const Inputs& in) { return scaled_dot_product_attention(in[0], in[1], in[2], {}, 0, causal); },
         2.5 * (causal ? attention / 2 : attention)});
  }
  const double square = 1024.0 * 1024;
  const auto unary = [&](const std::string& name, std::function<Tensor(const Tensor&)> f) {
    all.push_back({name + " 1024x1024", 0, 8 * square,
                   [] {
                     return Inputs{random({1024, 1024})};
                   },
                   [f = std::move(f)](const Inputs& in) { return f(in[0]); }});
  };
  unary("softmax", [](const Tensor& x) { return softmax(x, -1); });
  unary("log_softmax", [](const Tensor& x) { return log_softmax(x, -1); });
  unary("gelu", [](const Tensor& x) { return gelu(x); });
  unary("gelu tanh", [](const Tensor& x) { return gelu(x, GeluApproximation::Tanh); });
  unary("relu", [](const Tensor& x) { return relu(x); });
  unary("sum rows", [](const Tensor& x) { return sum(x, {1}); });
  unary("sum columns", [](const Tensor& x) { return sum(x, {0}); });
  const double narrow = 4.0 * (1 << 20);
  all.push_back({"sum narrow columns 1048576x4", 0, 4 * narrow,
                 [] {
                   return Inputs{random({1 << 20, 4})};
                 },
                 [](const Inputs& in) { return sum(in[0], {0}); }});
  all.push_back({"sum narrow columns transposed 1048576x4", 0, 4 * narrow,
                 [] {
                   return Inputs{random({4, 1 << 20})};
                 },
                 [](const Inputs& in) { return sum(in[0].t(), {0}); }});
  // Products with a vector read each element once.
  const auto vector_product = [&](const std::string& name, Shape a, Shape b, std::function<Tensor(const Inputs&)> f) {
    const auto flops = 2.0 * static_cast<double>(a.numel());
    all.push_back({name, flops, 4.0 * static_cast<double>(a.numel() + b.numel()),
                   [=] {
                     return Inputs{random(a), random(b, 2)};
                   },
                   std::move(f), 2 * flops});
  };
  vector_product("dot 4194304", {1 << 22}, {1 << 22}, [](const Inputs& in) { return dot(in[0], in[1]); });
  vector_product("einsum i,i-> 4194304", {1 << 22}, {1 << 22}, [](const Inputs& in) {
    return einsum("i,i->", {in[0], in[1]});
  });
  vector_product("mv 1024x1024", {1024, 1024}, {1024}, [](const Inputs& in) { return mv(in[0], in[1]); });
  vector_product("mv transposed 1024x1024", {1024, 1024}, {1024},
                 [](const Inputs& in) { return mv(in[0].t(), in[1]); });
  vector_product("mv 4x1048576", {4, 1 << 20}, {1 << 20}, [](const Inputs& in) { return mv(in[0], in[1]); });
  vector_product("mv transposed 1048576x4", {1 << 20, 4}, {1 << 20},
                 [](const Inputs& in) { return mv(in[0].t(), in[1]); });
  all.push_back({"layer_norm 1024x1024", 0, 8 * square,
                 [] {
                   return Inputs{random({1024, 1024}), random({1024}, 2), random({1024}, 3)};
                 },
                 [](const Inputs& in) { return layer_norm(in[0], {1024}, in[1], in[2]); }});
  all.push_back({"cross_entropy 1024x1024", 0, 4 * square,
                 [] {
                   RandomGenerator generator(4);
                   return Inputs{random({1024, 1024}), (rand({1024}, {}, &generator) * 1023.0).to(kInt64)};
                 },
                 [](const Inputs& in) { return cross_entropy(in[0], in[1]); }});
  all.push_back({"batch_norm 32x64x28x28", 0, 8.0 * 32 * 64 * 28 * 28,
                 [] {
                   return Inputs{random({32, 64, 28, 28}), random({64}, 2), random({64}, 3)};
                 },
                 [](const Inputs& in) { return batch_norm(in[0], in[1], in[2], {}, {}, true); }});
  all.push_back({"max_pool2d 32x64x56x56", 0, 5.0 * 32 * 64 * 56 * 56,
                 [] {
                   return Inputs{random({32, 64, 56, 56})};
                 },
                 [](const Inputs& in) { return max_pool2d(in[0], 2); }});
  all.push_back({"embedding 50000x256, 8192", 0, 8.0 * 8192 * 256,
                 [] {
                   RandomGenerator generator(4);
                   return Inputs{random({50000, 256}), (rand({8192}, {}, &generator) * 49999.0).to(kInt64)};
                 },
                 [](const Inputs& in) { return embedding(in[1], in[0]); }});
  return all;
}

bool is_run_in_halves(const std::string& name) {
  for (const char* op : {"matmul 512", "linear", "conv2d", "attention 4", "softmax", "gelu", "relu", "layer_norm",
                         "cross_entropy", "batch_norm"}) {
    if (name.starts_with(op)) return true;
  }
  return false;
}

// The same operation with floating inputs in `dtype`.
Operation in_dtype(Operation op, DType dtype) {
  op.in_float32 = op.name;
  op.name += std::string(" ") + name(dtype);
  op.bytes /= 2;
  op.dtype = dtype;
  op.inputs = [inputs = std::move(op.inputs), dtype] {
    Inputs in = inputs();
    for (Tensor& each : in) {
      if (is_floating_point(each.dtype())) each = each.detach().to(dtype).requires_grad_();
    }
    return in;
  };
  return op;
}

std::vector<MicroCase> cases() {
  std::vector<MicroCase> all;
  std::vector<Operation> chosen = operations();
  for (const DType dtype : {kBFloat16, kFloat16}) {
    for (const Operation& op : operations()) {
      if (is_run_in_halves(op.name)) chosen.push_back(in_dtype(op, dtype));
    }
  }
  for (const Operation& op : chosen) {
    const std::string dtype = name(op.dtype);
    all.push_back({.suite = "ops",
                   .name = op.name + " forward",
                   .dtype = dtype,
                   .flops = op.flops,
                   .bytes = op.bytes,
                   .prepare = [op]() -> std::function<double()> {
                     return repeated([op, in = op.inputs()] {
                       const NoGradGuard no_grad;
                       op.apply(in);
                     });
                   },
                   .beside = op.in_float32.empty() ? "" : op.in_float32 + " forward"});
    all.push_back({.suite = "ops",
                   .name = op.name + " backward",
                   .dtype = dtype,
                   .flops = op.backward_flops,
                   .prepare = [op]() -> std::function<double()> {
                     const Inputs in = op.inputs();
                     std::vector<Tensor> wanted;
                     for (const Tensor& each : in) {
                       if (each.requires_grad()) wanted.push_back(each);
                     }
                     RandomGenerator generator(9);
                     const Tensor like = op.apply(in);
                     const Tensor gradient = randn(like.sizes(), {}, &generator).to(like.dtype());
                     return [=] {
                       const Tensor outputs[] = {op.apply(in)};
                       return microseconds(1, [&] { autograd::grad(outputs, wanted, {.grad_outputs = {gradient}}); });
                     };
                   },
                   .beside = op.in_float32.empty() ? "" : op.in_float32 + " backward"});
  }
  return all;
}

const AddMicroCases add_ops_cases(&cases);

}  // namespace
}  // namespace brigade::lab
