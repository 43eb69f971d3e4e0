// Matrix products with oneDNN: each thread caches primitives by layout; small products are left to float32.
#include <brigade/kernels/cpu/detail/gemm.h>

#ifndef BRIGADE_HAVE_ONEDNN

namespace brigade::kernels::cpu {
bool onednn_matmul(const Tensor&, const Tensor&, const MatmulOptions&, const MatmulPlan&) { return false; }
}  // namespace brigade::kernels::cpu

#else

#include <brigade/kernels/cpu/detail/onednn.h>

#include <memory>

namespace brigade::kernels::cpu {
namespace {

using Memory = dnnl::memory;

// The sizes and strides of a matrix, or a batch of matrices, for oneDNN.
struct Layout {
  Memory::dims sizes, strides;
  auto operator<=>(const Layout&) const = default;
  Memory::desc desc() const { return {sizes, Memory::data_type::bf16, strides}; }
};

// The cache key of a primitive.
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

// The layout has `dims` dimensions; batch dimensions that the operand lacks are 1.
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

}  // namespace

bool onednn_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options, const MatmulPlan& plan) {
  constexpr int64_t kWorthIt = 32 * 32 * 32;
  if (a.dtype() != kBFloat16 || plan.m * plan.n * plan.k < kWorthIt || !onednn_has_bfloat16()) return false;
  const MatrixOperand x = prepare_operand(a, options.transpose_a);
  const MatrixOperand y = prepare_operand(b, options.transpose_b);
  const int dims = plan.out.dim();
  const Shape& sizes = plan.out.sizes();
  const Shape& strides = plan.out.strides();
  thread_local OnednnCache<Key, Product> cache;
  Product* const product =
      cache.find({layout_of(x, plan.m, plan.k, dims),
                  layout_of(y, plan.k, plan.n, dims),
                  {Memory::dims(sizes.begin(), sizes.end()), Memory::dims(strides.begin(), strides.end())},
                  plan.accumulate},
                 [](const Key& key) { return std::make_unique<Product>(key); });
  if (!product) return false;
  product->a.set_data_handle(x.tensor().raw_data());
  product->b.set_data_handle(y.tensor().raw_data());
  product->out.set_data_handle(plan.out.raw_data());
  product->primitive.execute(
      onednn_stream(), {{DNNL_ARG_SRC, product->a}, {DNNL_ARG_WEIGHTS, product->b}, {DNNL_ARG_DST, product->out}});
  onednn_stream().wait();
  return true;
}

}  // namespace brigade::kernels::cpu

#endif
