// Shapes that the table does not have by themselves.
#include "differential/step.h"

namespace brigade::differential {

namespace {

const AddSteps add_shapes{
    {"contiguous", [](const Call& call) -> Outputs { return call.in[0].contiguous(); }},
};

}  // namespace

}  // namespace brigade::differential
