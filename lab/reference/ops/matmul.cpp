// Matrix products and linear layers by name, for `brigade check`.
#include <brigade/autograd/ops/matmul.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_matmul{
    {"matmul", [](const Inputs& in, const Arguments&) -> Outputs { return matmul(in[0], in[1]); }},
    {"mm", [](const Inputs& in, const Arguments&) -> Outputs { return mm(in[0], in[1]); }},
    {"bmm", [](const Inputs& in, const Arguments&) -> Outputs { return bmm(in[0], in[1]); }},
    {"linear", [](const Inputs& in, const Arguments&) -> Outputs { return linear(in[0], in[1], in[2]); }},
    {"linear_relu", [](const Inputs& in, const Arguments&) -> Outputs { return linear_relu(in[0], in[1], in[2]); }},
    {"linear_gelu", [](const Inputs& in, const Arguments&) -> Outputs { return linear_gelu(in[0], in[1], in[2]); }},
};

}  // namespace

}  // namespace brigade::lab::reference
