// Logical functions and tests for NaN and infinity by name, for `brigade check`.
#include <brigade/autograd/ops/logical.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/ops/detail.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_logical{
    {"logical_and", &binary<&logical_and>},   {"logical_or", &binary<&logical_or>},
    {"logical_xor", &binary<&logical_xor>},   {"logical_not", &unary<&logical_not>},
    {"isnan", &unary<&brigade::isnan>},       {"isinf", &unary<&brigade::isinf>},
    {"isfinite", &unary<&brigade::isfinite>},
};

}  // namespace

}  // namespace brigade::lab::reference
