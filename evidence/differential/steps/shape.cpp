// Shape steps that the table has no operation of their own for.
#include "differential/step.h"

namespace brigade::differential {
namespace {

const AddSteps add_shapes{
    {"contiguous", [](const Call& call) -> Outputs { return call.in[0].contiguous(); }},
};

}  // namespace
}  // namespace brigade::differential
