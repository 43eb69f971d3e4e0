// Device-independent parts of reading rows and adding to rows by index: checks, shapes, allocation of results.
#pragma once

#include <brigade/core/index_error.h>
#include <brigade/kernels/embedding.h>

namespace brigade::kernels {

inline constexpr IndexRole kEmbeddingIndex{"embedding", "index", "row"};
inline constexpr IndexRole kEmbeddingBackwardIndex{"embedding_backward", "index", "row"};
inline constexpr IndexRole kSelectIndex{"index_select", "index", "row"};

// The result of embedding, not filled. Throws ShapeError, DTypeError, DeviceError.
Tensor prepare_embedding(const Tensor& weight, const Tensor& indices);
// The result of index_rows, not filled. Throws the same.
Tensor prepare_index_rows(const Tensor& x, const Tensor& indices);
// The result of embedding_backward: `options.out`, or a new tensor, not filled. Throws the same.
Tensor prepare_embedding_backward(const Tensor& grad, const Tensor& indices, const EmbeddingGrad& options);

// Calls body with the type of any dtype that can be summed; throws DTypeError for bool.
template <class Body>
void visit_summable(DType dtype, Body&& body) {
  switch (dtype) {
    case kInt64: return body.template operator()<int64_t>();
    case kInt32: return body.template operator()<int32_t>();
    case kUInt8: return body.template operator()<uint8_t>();
    default: return visit_floating(dtype, "embedding_backward", body);
  }
}

}  // namespace brigade::kernels
