// Elementary functions by name, for `brigade check`.
#include <brigade/autograd/ops/elementary.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/ops/detail.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_elementary{
    {"rsqrt", &unary<&rsqrt>},          {"sin", &unary<&brigade::sin>},     {"cos", &unary<&brigade::cos>},
    {"tan", &unary<&brigade::tan>},     {"asin", &unary<&brigade::asin>},   {"acos", &unary<&brigade::acos>},
    {"atan", &unary<&brigade::atan>},   {"sinh", &unary<&brigade::sinh>},   {"cosh", &unary<&brigade::cosh>},
    {"log1p", &unary<&brigade::log1p>}, {"expm1", &unary<&brigade::expm1>}, {"log2", &unary<&brigade::log2>},
    {"log10", &unary<&brigade::log10>}, {"exp2", &unary<&brigade::exp2>},   {"erf", &unary<&brigade::erf>},
    {"erfc", &unary<&brigade::erfc>},   {"floor", &unary<&brigade::floor>}, {"ceil", &unary<&brigade::ceil>},
    {"round", &unary<&brigade::round>}, {"trunc", &unary<&brigade::trunc>},
};

}  // namespace

}  // namespace brigade::lab::reference
