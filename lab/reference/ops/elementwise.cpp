// Arithmetic, comparisons, powers, elementary and logical functions, clamps and choices by name, for `brigade check`.
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/elementwise.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/ops/detail.h>

#include <optional>

namespace brigade::lab::reference {
namespace {

// Two tensors, or a tensor and the number "other".
template <class TwoTensors, class WithNumber>
Tensor with_other(const Inputs& in, const Arguments& args, TwoTensors two_tensors, WithNumber with_number) {
  return args.has("other") ? with_number(in[0], args.scalar("other")) : two_tensors(in[0], in[1]);
}

#define BRIGADE_WITH_OTHER(name)                                                                                  \
  {                                                                                                               \
#name, [](const Inputs& in, const Arguments& args) -> Outputs {                                                 \
     return with_other(                                                                                            \
         in, args, [](const Tensor& a, const Tensor& b) { return name(a, b); },                                    \
         [](const Tensor& a, Scalar b) { return name(a, b); });                                                    \
   } \
  }

const AddOperations add_arithmetic{
    BRIGADE_WITH_OTHER(add),
    BRIGADE_WITH_OTHER(sub),
    BRIGADE_WITH_OTHER(mul),
    BRIGADE_WITH_OTHER(div),
    BRIGADE_WITH_OTHER(eq),
    BRIGADE_WITH_OTHER(ne),
    BRIGADE_WITH_OTHER(lt),
    BRIGADE_WITH_OTHER(le),
    BRIGADE_WITH_OTHER(gt),
    BRIGADE_WITH_OTHER(ge),
    {"rsub", [](const Inputs& in, const Arguments& args) -> Outputs { return args.scalar("other") - in[0]; }},
    {"rdiv", [](const Inputs& in, const Arguments& args) -> Outputs { return args.scalar("other") / in[0]; }},
    {"maximum", [](const Inputs& in, const Arguments&) -> Outputs { return maximum(in[0], in[1]); }},
    {"minimum", [](const Inputs& in, const Arguments&) -> Outputs { return minimum(in[0], in[1]); }},
    {"neg", [](const Inputs& in, const Arguments&) -> Outputs { return -in[0]; }},
    {"abs", [](const Inputs& in, const Arguments&) -> Outputs { return brigade::abs(in[0]); }},
    {"exp", [](const Inputs& in, const Arguments&) -> Outputs { return brigade::exp(in[0]); }},
    {"log", [](const Inputs& in, const Arguments&) -> Outputs { return brigade::log(in[0]); }},
    {"sqrt", [](const Inputs& in, const Arguments&) -> Outputs { return brigade::sqrt(in[0]); }},
    {"reciprocal", [](const Inputs& in, const Arguments&) -> Outputs { return reciprocal(in[0]); }},
    {"square", [](const Inputs& in, const Arguments&) -> Outputs { return square(in[0]); }},
    {"sign", [](const Inputs& in, const Arguments&) -> Outputs { return sign(in[0]); }},
};

#undef BRIGADE_WITH_OTHER

const AddOperations add_power{
    {"pow",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("exponent") ? brigade::pow(in[0], args.scalar("exponent")) : brigade::pow(in[0], in[1]);
     }},
    {"rpow",
     [](const Inputs& in, const Arguments& args) -> Outputs { return brigade::pow(args.scalar("base"), in[0]); }},
    {"atan2", &binary<&brigade::atan2>},
    {"remainder",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("other") ? remainder(in[0], args.scalar("other")) : remainder(in[0], in[1]);
     }},
    {"fmod",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("other") ? fmod(in[0], args.scalar("other")) : fmod(in[0], in[1]);
     }},
};

const AddOperations add_elementary{
    {"rsqrt", &unary<&rsqrt>},          {"sin", &unary<&brigade::sin>},     {"cos", &unary<&brigade::cos>},
    {"tan", &unary<&brigade::tan>},     {"asin", &unary<&brigade::asin>},   {"acos", &unary<&brigade::acos>},
    {"atan", &unary<&brigade::atan>},   {"sinh", &unary<&brigade::sinh>},   {"cosh", &unary<&brigade::cosh>},
    {"log1p", &unary<&brigade::log1p>}, {"expm1", &unary<&brigade::expm1>}, {"log2", &unary<&brigade::log2>},
    {"log10", &unary<&brigade::log10>}, {"exp2", &unary<&brigade::exp2>},   {"erf", &unary<&brigade::erf>},
    {"erfc", &unary<&brigade::erfc>},   {"floor", &unary<&brigade::floor>}, {"ceil", &unary<&brigade::ceil>},
    {"round", &unary<&brigade::round>}, {"trunc", &unary<&brigade::trunc>},
};

const AddOperations add_logical{
    {"logical_and", &binary<&logical_and>},   {"logical_or", &binary<&logical_or>},
    {"logical_xor", &binary<&logical_xor>},   {"logical_not", &unary<&logical_not>},
    {"isnan", &unary<&brigade::isnan>},       {"isinf", &unary<&brigade::isinf>},
    {"isfinite", &unary<&brigade::isfinite>},
};

const AddOperations add_clamp{
    {"clamp",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       std::optional<Scalar> low, high;
       if (args.has("min")) low = args.scalar("min");
       if (args.has("max")) high = args.scalar("max");
       return clamp(in[0], low, high);
     }},
    {"clamp_min",
     [](const Inputs& in, const Arguments& args) -> Outputs { return clamp_min(in[0], args.scalar("min")); }},
    {"clamp_max",
     [](const Inputs& in, const Arguments& args) -> Outputs { return clamp_max(in[0], args.scalar("max")); }},
    {"clamp_tensors",
     [](const Inputs& in, const Arguments&) -> Outputs { return clamp(in[0], in[1], in.optional(2)); }},
};

const AddOperations add_ternary{
    {"lerp",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("weight") ? brigade::lerp(in[0], in[1], args.number("weight"))
                                 : brigade::lerp(in[0], in[1], in[2]);
     }},
    {"addcmul",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("value") ? addcmul(in[0], in[1], in[2], args.number("value")) : addcmul(in[0], in[1], in[2]);
     }},
    {"addcdiv",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("value") ? addcdiv(in[0], in[1], in[2], args.number("value")) : addcdiv(in[0], in[1], in[2]);
     }},
};

const AddOperations add_where{
    {"where",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("other") ? where(in[0], in[1], args.scalar("other")) : where(in[0], in[1], in[2]);
     }},
    {"masked_fill",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return masked_fill(in[0], in[1], args.scalar("value"));
     }},
};

}  // namespace
}  // namespace brigade::lab::reference
