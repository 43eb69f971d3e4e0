// Steps of SGD and Adam over many parameters, against plain loops in double.
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/optimizer.h>

#include <kernels/steps.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace brigade::test::optimizer_test {
using doctest::Contains;
using test::check_steps;
using test::Lists;
using test::row;

namespace {

using Values = std::vector<double>;
using List = std::vector<Tensor>;

// As in optimizer.h.
void plain_sgd(Values& v, const kernels::SgdParams& s) {
  const double g = (s.maximize ? -v[1] : v[1]) + s.weight_decay * v[0];
  if (v.size() == 2) {
    v[0] -= s.lr * g;
    return;
  }
  v[2] = s.first_step ? g : s.momentum * v[2] + (1 - s.dampening) * g;
  v[0] -= s.lr * (s.nesterov ? g + s.momentum * v[2] : v[2]);
}

// As in the Adam paper (algorithm 1), and as in the paper on decoupled weight decay (algorithm 2).
void plain_adam(Values& v, const kernels::AdamParams& a) {
  double g = a.maximize ? -v[1] : v[1];
  if (a.decoupled_weight_decay) {
    v[0] -= a.lr * a.weight_decay * v[0];
  } else {
    g += a.weight_decay * v[0];
  }
  v[2] = a.beta1 * v[2] + (1 - a.beta1) * g;
  v[3] = a.beta2 * v[3] + (1 - a.beta2) * g * g;
  double second = v[3];
  if (v.size() > 4) second = v[4] = std::max(v[4], second);
  const auto t = static_cast<double>(a.step);
  v[0] -= a.lr * v[2] / (1 - std::pow(a.beta1, t)) / (std::sqrt(second / (1 - std::pow(a.beta2, t))) + a.eps);
}

}  // namespace

TEST_CASE("a step of SGD, with and without momentum, is that of plain loops") {
  for (const bool maximize : {false, true}) {
    CAPTURE(maximize);
    const kernels::SgdParams plain{0.1, 0, 0, 0.3, false, false, maximize};
    check_steps(
        {}, [&](const Lists& x) { kernels::foreach_sgd_step(x[0], x[1], {}, plain); },
        [&](Values& v) { plain_sgd(v, plain); });
    for (const bool nesterov : {false, true}) {
      CAPTURE(nesterov);
      for (const bool first : {false, true}) {
        CAPTURE(first);
        const kernels::SgdParams s{0.1, 0.9, nesterov ? 0 : 0.2, 0.03, nesterov, first, maximize};
        check_steps(
            {1}, [&](const Lists& x) { kernels::foreach_sgd_step(x[0], x[1], x[2], s); },
            [&](Values& v) { plain_sgd(v, s); });
      }
    }
  }
}

TEST_CASE("a step of Adam, with each of its options, is that of plain loops") {
  for (const bool decoupled : {false, true}) {
    CAPTURE(decoupled);
    for (const bool maximize : {false, true}) {
      CAPTURE(maximize);
      for (const int64_t step : {1, 3, 1000}) {
        CAPTURE(step);
        const kernels::AdamParams a{0.01, 0.9, 0.99, 1e-3, 0.1, step, decoupled, maximize};
        check_steps(
            {1, 1}, [&](const Lists& x) { kernels::foreach_adam_step(x[0], x[1], x[2], x[3], {}, a); },
            [&](Values& v) { plain_adam(v, a); });
        check_steps(
            {1, 1, 1.2}, [&](const Lists& x) { kernels::foreach_adam_step(x[0], x[1], x[2], x[3], x[4], a); },
            [&](Values& v) { plain_adam(v, a); });
      }
    }
  }
}

TEST_CASE("gradients that are some powers of 2 too large are divided as they are read, to the bit") {
  for (const bool maximize : {false, true}) {
    CAPTURE(maximize);
    for (const DType dtype : test::kEveryFloating) {
      CAPTURE(std::string(name(dtype)));
      const auto list = [&](double first) { return List{row({first, 0.3, 2}, dtype), row({first}, dtype)}; };
      const List plain = list(1), scaled = list(1), momenta = list(0.5), scaled_momenta = list(0.5);
      kernels::foreach_sgd_step(plain, list(0.25), momenta, {0.1, 0.9, 0.2, 0.01, true, false, maximize});
      List grads = list(0.25);
      kernels::foreach_scale(grads, 8, Tensor());
      const Values before = grads[0].to_vector<double>();
      kernels::foreach_sgd_step(scaled, grads, scaled_momenta, {0.1, 0.9, 0.2, 0.01, true, false, maximize, 1.0 / 8});
      const kernels::AdamParams adam{0.1, 0.9, 0.99, 1e-8, 0.1, 3, false, maximize};
      kernels::AdamParams of_scaled = adam;
      of_scaled.grad_factor = 1.0 / 8;
      const List first = list(0.1), second = list(4), scaled_first = list(0.1), scaled_second = list(4);
      kernels::foreach_adam_step(plain, list(0.25), first, second, {}, adam);
      kernels::foreach_adam_step(scaled, grads, scaled_first, scaled_second, {}, of_scaled);
      for (const auto& [one, other] : {std::pair(plain, scaled), std::pair(momenta, scaled_momenta),
                                       std::pair(first, scaled_first), std::pair(second, scaled_second)}) {
        for (size_t i = 0; i < one.size(); ++i)
          CHECK(one[i].to_vector<double>() == other[i].to_vector<double>());
      }
      CHECK(grads[0].to_vector<double>() == before);
    }
  }
}

TEST_CASE("a learning rate in memory moves as one by the host") {
  for (const DType dtype : test::kEveryFloating) {
    CAPTURE(std::string(name(dtype)));
    const auto list = [&](double first) { return List{row({first, 0.3, 2}, dtype), row({first}, dtype)}; };
    const List plain[] = {list(1), list(1)}, other[] = {list(1), list(1)};
    const List first[] = {list(0), list(0)}, second[] = {list(0), list(0)};
    kernels::AdamParams adam{0.1, 0.9, 0.99, 1e-8, 0.1, 5, true, false};
    kernels::SgdParams sgd{0.1, 0, 0, 0.01, false, false, false};
    kernels::foreach_adam_step(plain[0], list(0.25), first[0], second[0], {}, adam);
    kernels::foreach_sgd_step(plain[1], list(0.25), {}, sgd);
    adam.device_lr = sgd.device_lr = full({}, 0.1, kFloat64);
    adam.lr = sgd.lr = 5;  // must not be read
    kernels::foreach_adam_step(other[0], list(0.25), first[1], second[1], {}, adam);
    kernels::foreach_sgd_step(other[1], list(0.25), {}, sgd);
    for (size_t l = 0; l < 2; ++l) {
      for (size_t i = 0; i < 2; ++i)
        CHECK(other[l][i].to_vector<double>() == plain[l][i].to_vector<double>());
    }
  }
}

TEST_CASE("the first step of SGD does not read its momentum buffer") {
  const Tensor param = row({1, 2}), buffer = row({std::nan(""), std::numeric_limits<double>::infinity()});
  kernels::sgd_step(param, row({4, 8}), buffer, {0.5, 0.9, 0.2, 0, false, true, false});
  CHECK(param.to_vector<double>() == Values{-1, -2});
  CHECK(buffer.to_vector<double>() == Values{4, 8});
}

TEST_CASE("a step of many parameters is the step of each; nothing moves when one of them does not fit") {
  const kernels::SgdParams sgd{0.1, 0.9, 0, 0.01, true, false, false};
  const kernels::AdamParams adam{0.1, 0.9, 0.99, 1e-8, 0.1, 3, true, false};
  for (const DType dtype : test::kEveryFloating) {
    const auto list = [&](double first) {
      return List{row({first, 2, 3}, dtype), row({first}, dtype), row({}, dtype)};
    };
    List together = list(1), alone = list(1);
    const List grads = list(0.5), together_m = list(0.25), alone_m = list(0.25), together_v = list(4),
               alone_v = list(4), together_x = list(1), alone_x = list(1);
    const auto compare = [&] {
      for (size_t i = 0; i < together.size(); ++i) {
        CHECK(together[i].to_vector<double>() == alone[i].to_vector<double>());
        CHECK(together_m[i].to_vector<double>() == alone_m[i].to_vector<double>());
        CHECK(together_v[i].to_vector<double>() == alone_v[i].to_vector<double>());
        CHECK(together_x[i].to_vector<double>() == alone_x[i].to_vector<double>());
      }
    };
    kernels::foreach_sgd_step(together, grads, together_m, sgd);
    kernels::foreach_sgd_step(together, grads, {}, sgd);
    kernels::foreach_adam_step(together, grads, together_m, together_v, {}, adam);
    kernels::foreach_adam_step(together, grads, together_m, together_v, together_x, adam);
    for (size_t i = 0; i < alone.size(); ++i) {
      kernels::sgd_step(alone[i], grads[i], alone_m[i], sgd);
      kernels::sgd_step(alone[i], grads[i], Tensor(), sgd);
      kernels::adam_step(alone[i], grads[i], alone_m[i], alone_v[i], Tensor(), adam);
      kernels::adam_step(alone[i], grads[i], alone_m[i], alone_v[i], alone_x[i], adam);
    }
    compare();
    CHECK(together[1].to_vector<double>() != Values{1});
  }
  const List params{row({1}), row({1})};
  CHECK_THROWS_WITH_AS(kernels::foreach_sgd_step(params, List{row({1}), row({1, 2})}, {}, sgd),
                       Contains("gradient must be contiguous and like the parameter"), ShapeError);
  CHECK_THROWS_WITH_AS(kernels::foreach_sgd_step(params, List{row({1})}, {}, sgd),
                       Contains("expected one gradient per parameter, got 1 for 2"), ShapeError);
  CHECK_THROWS_AS(kernels::foreach_sgd_step(params, params, List{row({1})}, sgd), ShapeError);
  CHECK_THROWS_AS(kernels::foreach_adam_step(params, params, List{row({1})}, params, {}, adam), ShapeError);
  CHECK_THROWS_AS(kernels::foreach_adam_step(params, params, params, List{row({1})}, {}, adam), ShapeError);
  CHECK_THROWS_AS(kernels::foreach_adam_step(params, params, params, params, List{row({1})}, adam), ShapeError);
  const List mixed{row({1}), row({1}, kFloat32)};
  CHECK_THROWS_WITH_AS(kernels::foreach_sgd_step(mixed, mixed, {}, sgd), Contains("tensors of one floating dtype"),
                       DTypeError);
  CHECK(params[0].to_vector<double>() == Values{1});
}

TEST_CASE("no parameters need no step, and rows with gaps are refused") {
  const kernels::SgdParams sgd{0.1, 0.9, 0, 0.01, true, false, false};
  const kernels::AdamParams adam{0.1, 0.9, 0.99, 1e-8, 0.1, 3, true, false};
  kernels::foreach_sgd_step(List{}, List{}, {}, sgd);
  kernels::foreach_adam_step(List{}, List{}, List{}, List{}, {}, adam);
  const List dense{ones({3, 2})}, gaps{view::transpose(ones({2, 3}), 0, 1)};
  CHECK_THROWS_WITH_AS(kernels::foreach_sgd_step(dense, dense, gaps, sgd),
                       Contains("momentum buffer must be contiguous and like the parameter float32 [3, 2]"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(kernels::foreach_sgd_step(gaps, dense, {}, sgd), Contains("gradient must be contiguous"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(kernels::foreach_adam_step(dense, dense, dense, gaps, {}, adam),
                       Contains("exp_avg_sq must be contiguous and like the parameter"), ShapeError);
  CHECK_THROWS_AS(kernels::foreach_sgd_step(List{ones({2}, kInt64)}, List{ones({2}, kInt64)}, {}, sgd), DTypeError);
  CHECK(dense[0].to_vector<double>() == Values(6, 1));
}

}  // namespace brigade::test::optimizer_test
