// Elementary and logical functions, powers, clamps and lerp by name, for `brigade check`.
#include <brigade/autograd/ops/clamp.h>
#include <brigade/autograd/ops/elementary.h>
#include <brigade/autograd/ops/logical.h>
#include <brigade/autograd/ops/power.h>
#include <brigade/autograd/ops/ternary.h>
#include <brigade/lab/reference/operation.h>

#include <optional>

namespace brigade::lab::reference {

namespace {

using Unary = Tensor (*)(const Tensor&, SourceLocation);
using Binary = Tensor (*)(const Tensor&, const Tensor&, SourceLocation);

template <Unary function>
Outputs unary(const Inputs& in, const Arguments&) {
  return function(in[0], SourceLocation::current());
}
template <Binary function>
Outputs binary(const Inputs& in, const Arguments&) {
  return function(in[0], in[1], SourceLocation::current());
}

const AddOperations add_elementwise{
    {"rsqrt", &unary<&rsqrt>},
    {"sin", &unary<&brigade::sin>},
    {"cos", &unary<&brigade::cos>},
    {"tan", &unary<&brigade::tan>},
    {"asin", &unary<&brigade::asin>},
    {"acos", &unary<&brigade::acos>},
    {"atan", &unary<&brigade::atan>},
    {"sinh", &unary<&brigade::sinh>},
    {"cosh", &unary<&brigade::cosh>},
    {"log1p", &unary<&brigade::log1p>},
    {"expm1", &unary<&brigade::expm1>},
    {"log2", &unary<&brigade::log2>},
    {"log10", &unary<&brigade::log10>},
    {"exp2", &unary<&brigade::exp2>},
    {"erf", &unary<&brigade::erf>},
    {"erfc", &unary<&brigade::erfc>},
    {"floor", &unary<&brigade::floor>},
    {"ceil", &unary<&brigade::ceil>},
    {"round", &unary<&brigade::round>},
    {"trunc", &unary<&brigade::trunc>},
    {"logical_and", &binary<&logical_and>},
    {"logical_or", &binary<&logical_or>},
    {"logical_xor", &binary<&logical_xor>},
    {"logical_not", &unary<&logical_not>},
    {"isnan", &unary<&brigade::isnan>},
    {"isinf", &unary<&brigade::isinf>},
    {"isfinite", &unary<&brigade::isfinite>},
    {"pow",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("exponent") ? brigade::pow(in[0], args.number("exponent")) : brigade::pow(in[0], in[1]);
     }},
    {"rpow",
     [](const Inputs& in, const Arguments& args) -> Outputs { return brigade::pow(args.number("base"), in[0]); }},
    {"atan2", &binary<&brigade::atan2>},
    {"remainder",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("other") ? remainder(in[0], args.number("other")) : remainder(in[0], in[1]);
     }},
    {"fmod",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("other") ? fmod(in[0], args.number("other")) : fmod(in[0], in[1]);
     }},
    {"clamp",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       std::optional<double> low, high;
       if (args.has("min")) low = args.number("min");
       if (args.has("max")) high = args.number("max");
       return clamp(in[0], low, high);
     }},
    {"clamp_min",
     [](const Inputs& in, const Arguments& args) -> Outputs { return clamp_min(in[0], args.number("min")); }},
    {"clamp_max",
     [](const Inputs& in, const Arguments& args) -> Outputs { return clamp_max(in[0], args.number("max")); }},
    {"clamp_tensors",
     [](const Inputs& in, const Arguments&) -> Outputs { return clamp(in[0], in[1], in.optional(2)); }},
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

}  // namespace

}  // namespace brigade::lab::reference
