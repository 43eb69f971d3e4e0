// Elementwise loops over the rows of the operands on all threads, with buffers for data that a loop cannot read in
// place.
#include <brigade/kernels/cpu/detail/stretches.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cpu/detail/conversion.h>

#include <algorithm>
#include <array>

namespace brigade::kernels::cpu {
namespace {

constexpr int kMostInputs = 3;
constexpr int64_t kStretch = 1024;

// An operand: its data, dtype and element size.
struct Operand {
  char* data;
  DType dtype;
  size_t bytes;  // of an element

  explicit Operand(const Tensor& x)
      : data(static_cast<char*>(x.raw_data())), dtype(x.dtype()), bytes(itemsize(x.dtype())) {}
  char* at(int64_t element) const { return data + element * static_cast<int64_t>(bytes); }
};

// Elements of an operand as a dense array of C: in place or in a buffer.
template <class C>
class Stretch {
 public:
  const C* load(const Operand& from, const char* first, int64_t step, int64_t n) {
    const void* dense = first;
    if (step != 1) {
      gather_words(first, step, from.bytes, words_, n);
      dense = words_;
    }
    if (from.dtype == dtype_of<C>) return static_cast<const C*>(dense);
    convert(from.dtype, dense, dtype_of<C>, numbers_, n);
    return numbers_;
  }
  // The array that a loop writes; store() then copies it to the output.
  C* room(const Operand& to, char* first, int64_t step) {
    return to.dtype == dtype_of<C> && step == 1 ? reinterpret_cast<C*>(first) : numbers_;
  }
  void store(const Operand& to, char* first, int64_t step, int64_t n) {
    if (to.dtype == dtype_of<C> && step == 1) return;
    const void* dense = numbers_;
    if (to.dtype != dtype_of<C>) {
      void* const target = step == 1 ? static_cast<void*>(first) : static_cast<void*>(words_);
      convert(dtype_of<C>, numbers_, to.dtype, target, n);
      if (step == 1) return;
      dense = words_;
    }
    scatter_words(dense, to.bytes, first, step, n);
  }

 private:
  alignas(64) char words_[kStretch * 8];
  alignas(64) C numbers_[kStretch];
};

template <class C, class Out>
struct Map {
  std::array<Operand, kMostInputs> inputs;
  int count;
  Operand out;
  Loop<C, Out> loop;

  // Processes one row. Offsets and steps are in elements: for each input, then for the output.
  void row(const std::array<int64_t, kMostInputs + 1>& offsets, const std::array<int64_t, kMostInputs + 1>& steps,
           int64_t length) const {
    std::array<Stretch<C>, kMostInputs> from;
    Stretch<Out> to;
    for (int64_t first = 0; first < length; first += kStretch) {
      const int64_t n = std::min(kStretch, length - first);
      const C* in[kMostInputs];
      for (int k = 0; k < count; ++k) {
        const auto i = static_cast<size_t>(k);
        in[k] = from[i].load(inputs[i], inputs[i].at(offsets[i] + first * steps[i]), steps[i], n);
      }
      char* const target = out.at(offsets[kMostInputs] + first * steps[kMostInputs]);
      loop(in, to.room(out, target, steps[kMostInputs]), n);
      to.store(out, target, steps[kMostInputs], n);
    }
  }
};

bool is_like(const Tensor& x, const Tensor& out) { return x.is_contiguous() && x.numel() == out.numel(); }

template <class C, class Out>
void map_stretches(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<C, Out> loop, int64_t cost) {
  const int count = static_cast<int>(inputs.size());
  const Tensor* const* const x = inputs.begin();
  bool is_dense = out.is_contiguous();
  bool is_direct = out.dtype() == dtype_of<Out>;
  for (const Tensor* input : inputs) {
    is_dense = is_dense && is_like(*input, out);
    is_direct = is_direct && input->dtype() == dtype_of<C>;
  }
  if (is_dense && is_direct) {
    parallel_for(
        out.numel(),
        [&](int64_t begin, int64_t end) {
          const C* in[kMostInputs];
          for (int k = 0; k < count; ++k)
            in[k] = static_cast<const C*>(x[k]->raw_data()) + begin;
          loop(in, static_cast<Out*>(out.raw_data()) + begin, end - begin);
        },
        cost);
    return;
  }
  // Missing inputs repeat the first one.
  const Tensor& second = count > 1 ? *x[1] : *x[0];
  const Tensor& third = count > 2 ? *x[2] : *x[0];
  const Map<C, Out> map{{Operand(*x[0]), Operand(second), Operand(third)}, count, Operand(out), loop};
  if (is_dense) {
    parallel_for(
        out.numel(),
        [&](int64_t begin, int64_t end) {
          map.row({begin, begin, begin, begin}, {1, 1, 1, 1}, end - begin);
        },
        cost);
    return;
  }
  StridedLoop<kMostInputs + 1>(out.sizes(), {x[0], &second, &third, &out})
      .for_each_row([&](const auto& offsets, const auto& steps, int64_t length) { map.row(offsets, steps, length); });
}

template <class Floats>
Tensor map_floating(const char* what, std::initializer_list<const Tensor*> inputs, int64_t cost, Floats floats,
                    Loop<double> doubles) {
  const Tensor& x = **inputs.begin();
  if (!is_floating_point(x.dtype())) visit_floating(x.dtype(), what, []<class T>() {});  // throws
  Tensor result = empty(x.sizes(), x.options());
  if (x.dtype() == kFloat64) {
    map_doubles(inputs, result, doubles, cost);
  } else {
    map_floats(inputs, result, floats, cost);
  }
  return result;
}

}  // namespace

void map_floats(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<float> loop, int64_t cost) {
  map_stretches<float, float>(inputs, out, loop, cost);
}
void map_floats(std::initializer_list<const Tensor*> inputs, const Tensor& out, FloatLoop loop, int64_t cost) {
  const auto run = [&]<class T>() {
    const auto each = [&](const T* const* in, T* to, int64_t n) {
      const void* arrays[kMostInputs] = {};
      std::copy_n(in, inputs.size(), arrays);
      loop({dtype_of<T>, arrays, to, n});
    };
    map_stretches<T, T>(inputs, out, each, cost);
  };
  // Half types stay half types in any layout: a loop may use different functions for them.
  const bool is_one_type =
      std::all_of(inputs.begin(), inputs.end(), [&](const Tensor* x) { return x->dtype() == out.dtype(); });
  if (is_one_type && out.dtype() == kFloat16) return run.template operator()<float16>();
  if (is_one_type && out.dtype() == kBFloat16) return run.template operator()<bfloat16>();
  run.template operator()<float>();
}
void map_doubles(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<double> loop, int64_t cost) {
  map_stretches<double, double>(inputs, out, loop, cost);
}
void map_integers(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<int64_t> loop) {
  map_stretches<int64_t, int64_t>(inputs, out, loop, 1);
}
void compare_floats(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<float, bool> loop) {
  map_stretches<float, bool>(inputs, out, loop, 1);
}
void compare_doubles(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<double, bool> loop) {
  map_stretches<double, bool>(inputs, out, loop, 1);
}
void compare_integers(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<int64_t, bool> loop) {
  map_stretches<int64_t, bool>(inputs, out, loop, 1);
}

Tensor map(const char* what, const Tensor& x, int64_t cost, Loop<float> floats, Loop<double> doubles) {
  return map_floating(what, {&x}, cost, floats, doubles);
}
Tensor map(const char* what, const Tensor& x, int64_t cost, FloatLoop floats, Loop<double> doubles) {
  return map_floating(what, {&x}, cost, floats, doubles);
}
Tensor map_backward(const char* what, const Tensor& grad, const Tensor& x, int64_t cost, Loop<float> floats,
                    Loop<double> doubles) {
  check_gradient_like(grad, x, what);
  return map_floating(what, {&grad, &x}, cost, floats, doubles);
}
Tensor map_backward(const char* what, const Tensor& grad, const Tensor& x, int64_t cost, FloatLoop floats,
                    Loop<double> doubles) {
  check_gradient_like(grad, x, what);
  return map_floating(what, {&grad, &x}, cost, floats, doubles);
}

}  // namespace brigade::kernels::cpu
