// The one table of autocast's rules.
#include <brigade/amp/autocast.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace brigade::amp {
namespace {

using enum autograd::CastRule;

constexpr const char* kFused = "follows its parts: the product, and an activation of no list";
constexpr const char* kOfParts = "made of operations of the list here, of none in PyTorch";

// One line per operation. The names are those that operations pass to cast_rule().
constexpr ListedOperation kOperations[] = {
    // --- matrix products and convolutions: fast in half types, and accumulated in float32
    {"addbmm", "addbmm", LowerPrecision, LowerPrecision, ""},
    {"addmm", "addmm", LowerPrecision, LowerPrecision, ""},
    {"addmv", "addmv", AsIs, LowerPrecision, kOfParts},
    {"baddbmm", "baddbmm", LowerPrecision, LowerPrecision, ""},
    {"bmm", "bmm", LowerPrecision, LowerPrecision, ""},
    {"conv1d", "conv1d", LowerPrecision, LowerPrecision, ""},
    {"conv2d", "conv2d", LowerPrecision, LowerPrecision, ""},
    {"conv_transpose1d", "conv_transpose1d", LowerPrecision, LowerPrecision, ""},
    {"conv_transpose2d", "conv_transpose2d", LowerPrecision, LowerPrecision, ""},
    {"einsum", "einsum", Unlisted, LowerPrecision, "on the CPU PyTorch's is made of bmm, as this one"},
    {"linear", "linear", LowerPrecision, LowerPrecision, ""},
    {"linear_gelu", "linear", LowerPrecision, LowerPrecision, kFused},
    {"linear_relu", "linear", LowerPrecision, LowerPrecision, kFused},
    {"matmul", "matmul", LowerPrecision, LowerPrecision, ""},
    {"mm", "mm", LowerPrecision, LowerPrecision, ""},
    {"mv", "mv", AsIs, LowerPrecision, kOfParts},
    {"prelu", "prelu", LowerPrecision, LowerPrecision, ""},
    {"scaled_dot_product_attention", "scaled_dot_product_attention", LowerPrecision, LowerPrecision, ""},

    // --- operations that leave the range of half types, or lose digits in them
    {"acos", "acos", Unlisted, Float32, ""},
    {"asin", "asin", Unlisted, Float32, ""},
    {"binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits", Float32, Float32, ""},
    {"cosh", "cosh", Unlisted, Float32, ""},
    {"cosine_embedding_loss", "cosine_embedding_loss", Float32, Float32, ""},
    {"cosine_similarity", "cosine_similarity", Unlisted, Float32, ""},
    {"cross_entropy", "cross_entropy_loss, log_softmax, nll_loss", Float32, Float32,
     "on CUDA PyTorch's is made of log_softmax and nll_loss"},
    {"cumprod", "cumprod", Unlisted, Float32, ""},
    {"cumsum", "cumsum", Unlisted, Float32, ""},
    {"exp", "exp", Unlisted, Float32, ""},
    {"expm1", "expm1", Unlisted, Float32, ""},
    {"group_norm", "group_norm", Unlisted, Float32, ""},
    {"hinge_embedding_loss", "hinge_embedding_loss", Float32, Float32, ""},
    {"huber_loss", "huber_loss", Float32, Float32, ""},
    {"interpolate", "upsample_bilinear2d, upsample_linear1d, upsample_nearest1d, upsample_nearest2d", Unlisted, Float32,
     "one name for PyTorch's functions of each mode"},
    {"kl_div", "kl_div", Float32, Float32, ""},
    {"l1_loss", "l1_loss", Float32, Float32, ""},
    {"layer_norm", "layer_norm", Unlisted, Float32, ""},
    {"log", "log", Unlisted, Float32, ""},
    {"log10", "log10", Unlisted, Float32, ""},
    {"log1p", "log1p", Unlisted, Float32, ""},
    {"log2", "log2", Unlisted, Float32, ""},
    {"log_softmax", "log_softmax", Unlisted, Float32, ""},
    {"logsumexp", "logsumexp", Unlisted, Float32, ""},
    {"margin_ranking_loss", "margin_ranking_loss", Float32, Float32, ""},
    {"matrix_norm", "linalg_matrix_norm", Unlisted, Float32, ""},
    {"mse_loss", "mse_loss", Float32, Float32, ""},
    {"nll_loss", "nll_loss, nll_loss2d", Float32, Float32, ""},
    {"norm", "norm", Unlisted, Float32, ""},
    {"pad_reflect", "reflection_pad1d, reflection_pad2d", Float32, Unlisted, "pad() with this mode"},
    {"pad_replicate", "replication_pad1d, replication_pad2d, replication_pad3d", Float32, Unlisted,
     "pad() with this mode"},
    {"poisson_nll_loss", "poisson_nll_loss", Float32, Float32, ""},
    {"pow", "pow", Unlisted, Float32, ""},
    {"prod", "prod", Float32, Float32, ""},
    {"rdiv", "reciprocal", Unlisted, Float32, "a number divided by a tensor, which in PyTorch takes the reciprocal"},
    {"reciprocal", "reciprocal", Unlisted, Float32, ""},
    {"rms_norm", "rms_norm", Unlisted, Float32, ""},
    {"rsqrt", "rsqrt", Unlisted, Float32, ""},
    {"sinh", "sinh", Unlisted, Float32, ""},
    {"smooth_l1_loss", "smooth_l1_loss", Float32, Float32, ""},
    {"soft_margin_loss", "soft_margin_loss", Float32, Float32, ""},
    {"softmax", "softmax", Unlisted, Float32, ""},
    {"softplus", "softplus", Unlisted, Float32, ""},
    {"square", "pow", Unlisted, Float32, "pow(x, 2) in PyTorch"},
    {"sum", "sum", Unlisted, Float32, ""},
    {"tan", "tan", Unlisted, Float32, ""},
    {"trace", "trace", Float32, Unlisted, ""},
    {"triplet_margin_loss", "triplet_margin_loss", Float32, Float32, ""},
    {"vector_norm", "linalg_vector_norm", Unlisted, Float32, ""},

    // --- several inputs that have to agree
    {"addcdiv", "addcdiv", Unlisted, Widest, ""},
    {"addcmul", "addcmul", Unlisted, Widest, ""},
    {"atan2", "atan2", Unlisted, Widest, ""},
    {"bilinear", "bilinear", AsIs, Widest, kOfParts},
    {"cat", "cat", Widest, Unlisted, ""},
    {"dot", "dot", AsIs, Widest, kOfParts},
    {"index_copy", "index_copy", Widest, Unlisted, ""},
    {"scatter_add", "scatter_add", Unlisted, Widest, ""},
    {"stack", "stack", Widest, Unlisted, ""},

    // --- refused
    {"binary_cross_entropy", "binary_cross_entropy", Float32, Refused, ""},
};

}  // namespace

std::span<const ListedOperation> op_lists() noexcept { return kOperations; }

CastRule cast_rule(const char* operation, DeviceType device) noexcept {
  const auto found = std::find_if(std::begin(kOperations), std::end(kOperations), [&](const ListedOperation& each) {
    return std::string_view(each.name) == operation;
  });
  return found == std::end(kOperations) ? Unlisted : found->rule(device);
}

const char* name(CastRule rule) noexcept {
  switch (rule) {
    case Unlisted: return "not listed";
    case AsIs: return "as it is";
    case LowerPrecision: return "lower precision";
    case Float32: return "float32";
    case Widest: return "widest";
    case Refused: break;
  }
  return "refused";
}

}  // namespace brigade::amp
