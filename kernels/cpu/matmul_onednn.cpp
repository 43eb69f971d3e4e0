// Each thread keeps primitives by layout; small products are left to float32.
#include <brigade/kernels/cpu/detail/matmul_onednn.h>

#ifndef BRIGADE_HAVE_ONEDNN

namespace brigade::kernels::cpu {
bool onednn_multiplies(DType, int64_t, int64_t, int64_t) { return false; }
bool onednn_matmul(const MatrixOperand&, const MatrixOperand&, const MatmulPlan&) { return false; }
}  // namespace brigade::kernels::cpu

#else

#include <brigade/kernels/cpu/detail/onednn_engine.h>
#include <brigade/kernels/cpu/detail/onednn_primitives.h>

#include <map>
#include <optional>

namespace brigade::kernels::cpu {

namespace {

using Memory = dnnl::memory;

// A matrix, or a batch of them, as oneDNN takes it.
struct Layout {
  Memory::dims sizes, strides;
  auto operator<=>(const Layout&) const = default;
  Memory::desc desc() const { return {sizes, Memory::data_type::bf16, strides}; }
};

// What a primitive is made for.
struct Key {
  Layout a, b, out;
  bool accumulate;
  auto operator<=>(const Key&) const = default;
};

struct Product {
  Memory a, b, out;
  dnnl::matmul primitive;

  explicit Product(const Key& key)
      : a(key.a.desc(), onednn_engine(), nullptr),
        b(key.b.desc(), onednn_engine(), nullptr),
        out(key.out.desc(), onednn_engine(), nullptr) {
    dnnl::primitive_attr attributes;
    if (key.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1);
      attributes.set_post_ops(sum);
    }
    primitive = dnnl::matmul(describe_matmul(onednn_engine(), a.get_desc(), b.get_desc(), out.get_desc(), attributes));
  }
};

// `dims` dimensions: those of a batch that the operand lacks are 1.
Layout layout_of(const MatrixOperand& operand, int64_t rows, int64_t columns, int dims) {
  const Tensor& x = operand.tensor();
  Layout layout;
  for (int d = 0; d < dims - 2; ++d) {
    const int own = d - (dims - x.dim());
    layout.sizes.push_back(own < 0 ? 1 : x.sizes()[own]);
    layout.strides.push_back(own < 0 ? rows * columns : x.strides()[own]);
  }
  layout.sizes.insert(layout.sizes.end(), {rows, columns});
  const int64_t along_rows = operand.transposed ? 1 : operand.row_length;
  layout.strides.insert(layout.strides.end(), {along_rows, operand.transposed ? operand.row_length : 1});
  return layout;
}

// Per thread, since ranks may be threads and a primitive's memory is not shared. Bounded: a job that never repeats a
// shape must not grow.
Product* find(const Key& key) {
  constexpr size_t kMost = 256;
  thread_local std::map<Key, std::optional<Product>> cache;
  const auto found = cache.find(key);
  if (found != cache.end()) return found->second ? &*found->second : nullptr;
  if (cache.size() >= kMost) cache.clear();
  std::optional<Product>& made = cache[key];
  try {
    made.emplace(key);
  } catch (const dnnl::error&) {
    // No primitive for this shape: remember that.
  }
  return made ? &*made : nullptr;
}

}  // namespace

bool onednn_multiplies(DType dtype, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kWorthIt = 32 * 32 * 32;
  return dtype == kBFloat16 && m * n * k >= kWorthIt && onednn_has_bfloat16();
}

bool onednn_matmul(const MatrixOperand& a, const MatrixOperand& b, const MatmulPlan& plan) {
  const int dims = plan.out.dim();
  const Shape& sizes = plan.out.sizes();
  Product* const product = find(
      {layout_of(a, plan.m, plan.k, dims),
       layout_of(b, plan.k, plan.n, dims),
       {Memory::dims(sizes.begin(), sizes.end()), Memory::dims(plan.out.strides().begin(), plan.out.strides().end())},
       plan.accumulate});
  if (!product) return false;
  product->a.set_data_handle(a.tensor().raw_data());
  product->b.set_data_handle(b.tensor().raw_data());
  product->out.set_data_handle(plan.out.raw_data());
  product->primitive.execute(
      onednn_stream(), {{DNNL_ARG_SRC, product->a}, {DNNL_ARG_WEIGHTS, product->b}, {DNNL_ARG_DST, product->out}});
  onednn_stream().wait();
  return true;
}

}  // namespace brigade::kernels::cpu

#endif
