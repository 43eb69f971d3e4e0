// Scaled dot-product attention, in tiles (kernels/attention.h).
#pragma once

#include <brigade/core/random.h>
#include <brigade/core/tensor.h>

#include <optional>

namespace brigade {

// softmax(query key^T * scale + mask) value. query [..., queries, width], key [..., keys, width], value [..., keys,
// value width]: one floating dtype, equal leading dimensions; result [..., queries, value width]. `attn_mask`
// broadcasts to [..., queries, keys]: bool (true: the key counts), or floating (added to the scores; its gradient is
// summed over the broadcast dimensions and needs memory for all scores while it is computed). `is_causal`: query i sees
// the keys 0 .. i; not together with a mask. `dropout_p` always applies to the probabilities (pass 0 when not
// training), with numbers from the calling thread's generator. `scale`: 1 / sqrt(width) by default. `enable_gqa`: key
// and value may have fewer heads (dimension -3), a divisor of the query's; query head h reads key head
// h / (query heads / key heads). A query whose keys are all masked gives zeros. CUDA: widths up to 256.
// Throws ShapeError, DTypeError, DeviceError, ValueError.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask = {}, double dropout_p = 0, bool is_causal = false,
                                    std::optional<double> scale = {}, bool enable_gqa = false,
                                    SourceLocation where = SourceLocation::current());

}  // namespace brigade
