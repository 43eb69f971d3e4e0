// Arithmetic and comparisons by name, for `brigade check`: on two tensors, or on a tensor and a number.
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/lab/reference/operation.h>

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

}  // namespace

}  // namespace brigade::lab::reference
