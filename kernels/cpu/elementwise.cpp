#include <brigade/kernels/elementwise.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/strided.h>

#include <cmath>

namespace brigade::kernels {

namespace {

using cpu::parallel_for;
using cpu::StridedLoop;

// Calls body with a functor for the operation, so that the loop is compiled once per operation and dtype.
template <class C, class Body>
void with_binary(BinaryOp op, Body&& body) {
  switch (op) {
    case BinaryOp::Add: body([](C x, C y) { return static_cast<C>(x + y); }); break;
    case BinaryOp::Sub: body([](C x, C y) { return static_cast<C>(x - y); }); break;
    case BinaryOp::Mul: body([](C x, C y) { return static_cast<C>(x * y); }); break;
    case BinaryOp::Div: body([](C x, C y) { return static_cast<C>(x / y); }); break;
    // A NaN in either operand stays one, as in PyTorch.
    case BinaryOp::Maximum: body([](C x, C y) { return x != x || x > y ? x : y; }); break;
    case BinaryOp::Minimum: body([](C x, C y) { return x != x || x < y ? x : y; }); break;
  }
}

template <class C, class Body>
void with_compare(CompareOp op, Body&& body) {
  switch (op) {
    case CompareOp::Equal: body([](C x, C y) { return x == y; }); break;
    case CompareOp::NotEqual: body([](C x, C y) { return x != y; }); break;
    case CompareOp::Less: body([](C x, C y) { return x < y; }); break;
    case CompareOp::LessEqual: body([](C x, C y) { return x <= y; }); break;
    case CompareOp::Greater: body([](C x, C y) { return x > y; }); break;
    case CompareOp::GreaterEqual: body([](C x, C y) { return x >= y; }); break;
  }
}

// out = f(a, b), out contiguous, a and b broadcast to its shape; all of element type T but out.
template <class T, class Out, class F>
void map2(const Tensor& a, const Tensor& b, const Tensor& out, F f) {
  using C = compute_type<T>;
  const T* x = static_cast<const T*>(a.raw_data());
  const T* y = static_cast<const T*>(b.raw_data());
  Out* z = static_cast<Out*>(out.raw_data());
  if (a.is_contiguous() && b.is_contiguous() && a.numel() == out.numel() && b.numel() == out.numel()) {
    parallel_for(out.numel(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        z[i] = static_cast<Out>(f(static_cast<C>(x[i]), static_cast<C>(y[i])));
    });
    return;
  }
  StridedLoop<3>(out.sizes(), {&a, &b, &out}).for_each_row([&](const auto& offsets, const auto& steps, int64_t length) {
    const T* p = x + offsets[0];
    const T* q = y + offsets[1];
    Out* r = z + offsets[2];
    // The three shapes of inner loop that a compiler vectorises, then the general one.
    if (steps[0] == 1 && steps[1] == 1) {
      for (int64_t i = 0; i < length; ++i)
        r[i] = static_cast<Out>(f(static_cast<C>(p[i]), static_cast<C>(q[i])));
    } else if (steps[0] == 1 && steps[1] == 0) {
      const C right = static_cast<C>(*q);
      for (int64_t i = 0; i < length; ++i)
        r[i] = static_cast<Out>(f(static_cast<C>(p[i]), right));
    } else if (steps[0] == 0 && steps[1] == 1) {
      const C left = static_cast<C>(*p);
      for (int64_t i = 0; i < length; ++i)
        r[i] = static_cast<Out>(f(left, static_cast<C>(q[i])));
    } else {
      for (int64_t i = 0; i < length; ++i) {
        r[i] = static_cast<Out>(f(static_cast<C>(p[i * steps[0]]), static_cast<C>(q[i * steps[1]])));
      }
    }
  });
}

// out = f(a), out contiguous and of the shape of a.
template <class T, class Out, class F>
void map1(const Tensor& a, const Tensor& out, F f) {
  using C = compute_type<T>;
  const T* x = static_cast<const T*>(a.raw_data());
  Out* z = static_cast<Out*>(out.raw_data());
  if (a.is_contiguous()) {
    parallel_for(out.numel(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        z[i] = static_cast<Out>(f(static_cast<C>(x[i])));
    });
    return;
  }
  StridedLoop<2>(out.sizes(), {&a, &out}).for_each_row([&](const auto& offsets, const auto& steps, int64_t length) {
    for (int64_t i = 0; i < length; ++i) {
      z[offsets[1] + i * steps[1]] = static_cast<Out>(f(static_cast<C>(x[offsets[0] + i * steps[0]])));
    }
  });
}

void check_devices(const Tensor& a, const Tensor& b, const char* what) {
  if (a.device() == b.device()) return;
  throw DeviceError(std::string(what) + ": both tensors must be on one device, got " + to_string(a.device()) + " and " +
                    to_string(b.device()));
}

const char* name(BinaryOp op) {
  constexpr const char* kNames[] = {"add", "sub", "mul", "div", "maximum", "minimum"};
  return kNames[static_cast<int>(op)];
}

Tensor binary_cpu(const Tensor& a, const Tensor& b, BinaryOp op) {
  check_devices(a, b, name(op));
  DType dtype = promote_types(a.dtype(), b.dtype());
  if (op == BinaryOp::Div && !is_floating_point(dtype)) dtype = kFloat32;
  if (dtype == kBool && (op == BinaryOp::Sub || op == BinaryOp::Div)) {
    throw DTypeError(std::string(name(op)) + ": not defined for two bool tensors; convert one with .to(kInt64)");
  }
  const Shape sizes = a.sizes() == b.sizes() ? a.sizes() : broadcast_shapes(a.sizes(), b.sizes());
  const Tensor x = cast(a, dtype);
  const Tensor y = cast(b, dtype);
  Tensor out = empty(sizes, {dtype, a.device()});
  visit_dtype(dtype, [&]<class T>() { with_binary<compute_type<T>>(op, [&](auto f) { map2<T, T>(x, y, out, f); }); });
  return out;
}

Tensor binary_scalar_cpu(const Tensor& a, double scalar, BinaryOp op, bool reversed) {
  DType dtype = a.dtype();
  if (!is_floating_point(dtype) && (op == BinaryOp::Div || scalar != std::floor(scalar))) dtype = kFloat32;
  if (dtype == kBool) dtype = kInt64;
  const Tensor x = cast(a, dtype);
  Tensor out = empty(a.sizes(), {dtype, a.device()});
  visit_dtype(dtype, [&]<class T>() {
    using C = compute_type<T>;
    const C s = static_cast<C>(scalar);
    with_binary<C>(op, [&](auto f) {
      if (reversed) {
        map1<T, T>(x, out, [=](C v) { return f(s, v); });
      } else {
        map1<T, T>(x, out, [=](C v) { return f(v, s); });
      }
    });
  });
  return out;
}

Tensor compare_cpu(const Tensor& a, const Tensor& b, CompareOp op) {
  check_devices(a, b, "comparison");
  const DType dtype = promote_types(a.dtype(), b.dtype());
  const Tensor x = cast(a, dtype);
  const Tensor y = cast(b, dtype);
  Tensor out = empty(broadcast_shapes(a.sizes(), b.sizes()), {kBool, a.device()});
  visit_dtype(dtype,
              [&]<class T>() { with_compare<compute_type<T>>(op, [&](auto f) { map2<T, bool>(x, y, out, f); }); });
  return out;
}

Tensor compare_scalar_cpu(const Tensor& a, double scalar, CompareOp op) {
  Tensor out = empty(a.sizes(), {kBool, a.device()});
  visit_dtype(a.dtype(), [&]<class T>() {
    // In double, so that an integer tensor compares with 0.5 as one expects.
    with_compare<double>(op, [&](auto f) {
      map1<T, bool>(a, out, [=](compute_type<T> v) { return f(static_cast<double>(v), scalar); });
    });
  });
  return out;
}

template <class T>
void unary_any(const Tensor& x, const Tensor& out, UnaryOp op) {
  using C = compute_type<T>;
  switch (op) {
    case UnaryOp::Neg: map1<T, T>(x, out, [](C v) { return static_cast<C>(-v); }); break;
    case UnaryOp::Abs: map1<T, T>(x, out, [](C v) { return v < C(0) ? static_cast<C>(-v) : v; }); break;
    case UnaryOp::Square: map1<T, T>(x, out, [](C v) { return static_cast<C>(v * v); }); break;
    default: map1<T, T>(x, out, [](C v) { return static_cast<C>((C(0) < v) - (v < C(0))); }); break;  // Sign
  }
}

template <class T>
void unary_floating(const Tensor& x, const Tensor& out, UnaryOp op) {
  using C = compute_type<T>;
  switch (op) {
    case UnaryOp::Exp: map1<T, T>(x, out, [](C v) { return std::exp(v); }); break;
    case UnaryOp::Log: map1<T, T>(x, out, [](C v) { return std::log(v); }); break;
    case UnaryOp::Sqrt: map1<T, T>(x, out, [](C v) { return std::sqrt(v); }); break;
    case UnaryOp::Reciprocal: map1<T, T>(x, out, [](C v) { return C(1) / v; }); break;
    default: unary_any<T>(x, out, op); break;
  }
}

Tensor unary_cpu(const Tensor& x, UnaryOp op) {
  Tensor out = empty(x.sizes(), x.options());
  const bool takes_integers = op == UnaryOp::Neg || op == UnaryOp::Abs || op == UnaryOp::Square || op == UnaryOp::Sign;
  if (takes_integers && x.dtype() == kInt64) {
    unary_any<int64_t>(x, out, op);
  } else if (takes_integers && x.dtype() == kInt32) {
    unary_any<int32_t>(x, out, op);
  } else {
    visit_floating(x.dtype(), "unary operation", [&]<class T>() { unary_floating<T>(x, out, op); });
  }
  return out;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&, BinaryOp)> binary("binary", &binary_cpu);
constinit Kernel<Tensor(const Tensor&, double, BinaryOp, bool)> binary_scalar("binary_scalar", &binary_scalar_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, CompareOp)> compare("compare", &compare_cpu);
constinit Kernel<Tensor(const Tensor&, double, CompareOp)> compare_scalar("compare_scalar", &compare_scalar_cpu);
constinit Kernel<Tensor(const Tensor&, UnaryOp)> unary("unary", &unary_cpu);

}  // namespace brigade::kernels
