// What DDP does, measured on two ranks (threads): for claims that no planted fault stands for.
#pragma once

#include <brigade/lab/claims/claim.h>

namespace brigade::lab {

// A backward under find_unused_parameters that leaves a head out sends what one sends that uses all.
Evidence bytes_with_an_unused_head();
// One that was frozen before wrapping is not sent.
Evidence bytes_with_a_frozen_head();
// Names whose gradient is missing on a rank that has not used a head, after another rank has.
Evidence names_without_gradient();
// What ddp.explain() says of that head there.
Evidence users_of_the_head();
// When buckets leave, and when backward ends.
Evidence buckets_that_left_in_backward();
// Whether gradients are equal on the ranks between backward and step.
Evidence gradients_before_step();

}  // namespace brigade::lab
