// Scaled dot-product attention, in tiles (kernels/attention.h).
#pragma once

#include <brigade/core/random.h>
#include <brigade/core/tensor.h>

#include <optional>

namespace brigade {

// softmax(query key^T * scale + mask) value. query [..., queries, width], key [..., keys, width],
// value [..., keys, value width]: one floating dtype, equal leading dimensions; result [...,
// queries, value width]. `attn_mask` broadcasts to [..., queries, keys]: bool (true: the key
// counts), or floating (added to the scores); it gets no gradient. `is_causal`: query i sees the
// keys 0 .. i; not together with a mask. `dropout_p` applies to the probabilities, whoever calls
// (pass 0 when not training), with numbers from the calling thread's generator. `scale`:
// 1 / sqrt(width) when not given. A query for which no key counts gives zeros. CUDA: widths up to
// 256.
// Throws ShapeError, DTypeError, DeviceError, ValueError, and AutogradError for a mask that
// requires grad.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask = {}, double dropout_p = 0, bool is_causal = false,
                                    std::optional<double> scale = {}, SourceLocation where = SourceLocation::current());

}  // namespace brigade
