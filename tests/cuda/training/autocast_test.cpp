// Autocast on a device, with CUDA's operation lists.
#include <brigade/amp/autocast.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/device_runtime.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <core/error_of.h>
#include <doctest/doctest.h>

#include <map>

namespace brigade::test::autocast_test {
using amp::autocast;
using amp::CastRule;

namespace {

Tensor on_device(DType dtype, const Shape& sizes = {2, 2}) { return full(sizes, 0.5, {dtype, Device(kCUDA)}); }

using Call = std::function<Tensor(const Tensor&)>;

// An example of each operation that CUDA's lists cast to float32 or leave unchanged, all from one matrix.
std::map<std::string, Call> calls() {
  const Tensor labels = zeros({2}, {kInt64, Device(kCUDA)});
  return {
      {"acos", [](const Tensor& x) { return acos(x); }},
      {"asin", [](const Tensor& x) { return asin(x); }},
      {"cosh", [](const Tensor& x) { return cosh(x); }},
      {"cumprod", [](const Tensor& x) { return cumprod(x, 0); }},
      {"cumsum", [](const Tensor& x) { return cumsum(x, 0); }},
      {"exp", [](const Tensor& x) { return exp(x); }},
      {"expm1", [](const Tensor& x) { return expm1(x); }},
      {"log", [](const Tensor& x) { return log(x); }},
      {"log10", [](const Tensor& x) { return log10(x); }},
      {"log1p", [](const Tensor& x) { return log1p(x); }},
      {"log2", [](const Tensor& x) { return log2(x); }},
      {"log_softmax", [](const Tensor& x) { return log_softmax(x, 0); }},
      {"logsumexp", [](const Tensor& x) { return logsumexp(x); }},
      {"matrix_norm", [](const Tensor& x) { return matrix_norm(x); }},
      {"norm", [](const Tensor& x) { return norm(x); }},
      {"pow", [](const Tensor& x) { return pow(x, 2.0); }},
      {"prod", [](const Tensor& x) { return prod(x); }},
      {"rdiv", [](const Tensor& x) { return div(1.0, x); }},
      {"reciprocal", [](const Tensor& x) { return reciprocal(x); }},
      {"rsqrt", [](const Tensor& x) { return rsqrt(x); }},
      {"sinh", [](const Tensor& x) { return sinh(x); }},
      {"softmax", [](const Tensor& x) { return softmax(x, 0); }},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"square", [](const Tensor& x) { return square(x); }},
      {"sum", [](const Tensor& x) { return sum(x); }},
      {"tan", [](const Tensor& x) { return tan(x); }},
      {"vector_norm", [](const Tensor& x) { return vector_norm(x); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, {2}); }},
      {"rms_norm", [](const Tensor& x) { return rms_norm(x, {2}); }},
      {"group_norm", [](const Tensor& x) { return group_norm(x, 1); }},
      {"cosine_similarity", [](const Tensor& x) { return cosine_similarity(x, x); }},
      {"interpolate",
       [](const Tensor& x) {
         return interpolate(x.reshape({1, 1, 2, 2}), {.scale_factor = {{2, 2}}});
       }},
      {"cross_entropy", [=](const Tensor& x) { return cross_entropy(x, labels); }},
      {"nll_loss", [=](const Tensor& x) { return nll_loss(x, labels); }},
      {"mse_loss", [](const Tensor& x) { return mse_loss(x, x); }},
      {"l1_loss", [](const Tensor& x) { return l1_loss(x, x); }},
      {"smooth_l1_loss", [](const Tensor& x) { return smooth_l1_loss(x, x); }},
      {"huber_loss", [](const Tensor& x) { return huber_loss(x, x); }},
      {"kl_div", [](const Tensor& x) { return kl_div(x, x); }},
      {"binary_cross_entropy_with_logits", [](const Tensor& x) { return binary_cross_entropy_with_logits(x, x); }},
      {"poisson_nll_loss", [](const Tensor& x) { return poisson_nll_loss(x, x); }},
      {"hinge_embedding_loss", [](const Tensor& x) { return hinge_embedding_loss(x, x); }},
      {"margin_ranking_loss", [](const Tensor& x) { return margin_ranking_loss(x, x, x); }},
      {"cosine_embedding_loss", [=](const Tensor& x) { return cosine_embedding_loss(x, x, labels); }},
      {"soft_margin_loss", [](const Tensor& x) { return soft_margin_loss(x, x); }},
      {"triplet_margin_loss", [](const Tensor& x) { return triplet_margin_loss(x, x, x); }},
  };
}

bool has_device() {
  if (device_count(kCUDA) > 0) return true;
  MESSAGE("skipped: " << why_no_device(kCUDA));
  return false;
}

}  // namespace

TEST_CASE("what CUDA's list computes in float32 does so from float16, and float64 stays") {
  if (!has_device()) return;
  const std::map<std::string, Call> known = calls();
  const autocast region(kCUDA, kFloat16);
  for (const amp::ListedOperation& operation : amp::op_lists()) {
    if (operation.cuda != CastRule::Float32) continue;
    CAPTURE(operation.name);
    const auto found = known.find(operation.name);
    REQUIRE(found != known.end());
    CHECK(found->second(on_device(kFloat16)).dtype() == kFloat32);
    CHECK(found->second(on_device(kFloat64)).dtype() == kFloat64);
  }
}

TEST_CASE("what CUDA's list computes in the lower precision does so from float32") {
  if (!has_device()) return;
  const Tensor x = on_device(kFloat32), batch = on_device(kFloat32, {1, 2, 2}),
               image = on_device(kFloat32, {1, 2, 2, 2});
  const Tensor vector = on_device(kFloat32, {2});
  const autocast region(kCUDA, kBFloat16);
  const std::map<std::string, Tensor> results = {
      {"mm", mm(x, x)},
      {"matmul", matmul(x, x)},
      {"bmm", bmm(batch, batch)},
      {"mv", mv(x, vector)},
      {"addmm", addmm(x, x, x)},
      {"addmv", addmv(vector, x, vector)},
      {"baddbmm", baddbmm(batch, batch, batch)},
      {"addbmm", addbmm(x, batch, batch)},
      {"einsum", einsum("ij->ji", {x})},
      {"linear", linear(x, x, vector)},
      {"linear_relu", linear_relu(x, x, vector)},
      {"linear_gelu", linear_gelu(x, x, vector)},
      {"prelu", prelu(x, vector)},
      {"conv1d", conv1d(batch, batch)},
      {"conv2d", conv2d(image, image)},
      {"conv_transpose1d", conv_transpose1d(batch, on_device(kFloat32, {2, 1, 2}))},
      {"conv_transpose2d", conv_transpose2d(image, on_device(kFloat32, {2, 1, 2, 2}))},
      {"scaled_dot_product_attention", scaled_dot_product_attention(batch, batch, batch)},
  };
  for (const amp::ListedOperation& operation : amp::op_lists()) {
    if (operation.cuda != CastRule::LowerPrecision) continue;
    CAPTURE(operation.name);
    REQUIRE(results.contains(operation.name));
    CHECK(results.at(operation.name).dtype() == kBFloat16);
  }
}

TEST_CASE("the widest dtype among the inputs decides for what CUDA promotes") {
  if (!has_device()) return;
  const Tensor lower = on_device(kFloat16), wide = on_device(kFloat32);
  const autocast region(kCUDA, kFloat16);
  CHECK(addcmul(lower, wide, lower).dtype() == kFloat32);
  CHECK(addcdiv(lower, wide, lower).dtype() == kFloat32);
  CHECK(atan2(lower, wide).dtype() == kFloat32);
  CHECK(dot(on_device(kFloat16, {2}), on_device(kFloat32, {2})).dtype() == kFloat32);
  CHECK(dot(on_device(kFloat16, {2}), on_device(kFloat16, {2})).dtype() == kFloat16);
  CHECK(bilinear(lower, wide, on_device(kFloat16, {2, 2, 2})).dtype() == kFloat32);
  CHECK(scatter_add(lower, 0, zeros({2, 2}, {kInt64, Device(kCUDA)}), wide).dtype() == kFloat32);
  // cat promotes on its own on a device.
  CHECK(cat({lower, wide}).dtype() == kFloat32);
}

TEST_CASE("binary cross entropy is refused on a device, with PyTorch's words and what to do") {
  if (!has_device()) return;
  const Tensor probability = on_device(kFloat32);
  const autocast region(kCUDA, kFloat16);
  const std::string error = test::error_of([&] { binary_cross_entropy(probability, probability); });
  CHECK(error.find("binary_cross_entropy: torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to "
                   "autocast.") == 0);
  CHECK(error.find("binary_cross_entropy_with_logits or BCEWithLogitsLoss") != std::string::npos);
  CHECK(error.find("a region with autocast disabled") != std::string::npos);
  CHECK(error.find("autocast_test.cpp:") != std::string::npos);
  const autocast off(kCUDA, {}, false);
  CHECK(binary_cross_entropy(probability, probability).dtype() == kFloat32);
}

TEST_CASE("what is written in place on a device keeps its dtype, also where the operation is listed") {
  if (!has_device()) return;
  const Tensor x = on_device(kFloat16);
  const autocast region(kCUDA, kFloat16);
  CHECK(exp(x).dtype() == kFloat32);
  CHECK(exp_(x.clone()).dtype() == kFloat16);
  CHECK(div_(x.clone(), x).dtype() == kFloat16);
}

TEST_CASE("a module trains in float16 on a device, its parameters and gradients in float32") {
  if (!has_device()) return;
  const nn::Linear layer(2, 2);
  layer->to(Device(kCUDA));
  Tensor loss;
  {
    const autocast region(kCUDA, kFloat16);
    const Tensor y = layer(on_device(kFloat32));
    CHECK(y.dtype() == kFloat16);
    loss = mse_loss(y, on_device(kFloat16));
    CHECK(loss.dtype() == kFloat32);
  }
  loss.backward();
  CHECK(layer->weight.grad().dtype() == kFloat32);
  CHECK(layer->bias.grad().dtype() == kFloat32);
}

}  // namespace brigade::test::autocast_test
