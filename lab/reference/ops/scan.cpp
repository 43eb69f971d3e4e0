// Cumulative results and linear recurrences by name, for `brigade check`.
#include <brigade/autograd/ops/scan.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_scan{
    {"cumsum", [](const Inputs& in, const Arguments& args) -> Outputs { return cumsum(in[0], args.integer("dim")); }},
    {"cumprod", [](const Inputs& in, const Arguments& args) -> Outputs { return cumprod(in[0], args.integer("dim")); }},
    {"logcumsumexp",
     [](const Inputs& in, const Arguments& args) -> Outputs { return logcumsumexp(in[0], args.integer("dim")); }},
    {"linear_recurrence",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("reverse") ? linear_recurrence(in[0], in[1], args.integer("dim"), args.flag("reverse"))
                                  : linear_recurrence(in[0], in[1], args.integer("dim"));
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
