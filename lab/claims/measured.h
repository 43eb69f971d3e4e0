// Measurements of DDP on two ranks (threads), for claims that no planted fault covers.
#pragma once

#include <brigade/lab/claims/claim.h>

namespace brigade::lab {

// Whether a backward under find_unused_parameters that skips a head sends as much as one that uses all heads.
Evidence bytes_with_an_unused_head();
// Whether a head that was frozen before wrapping is not sent.
Evidence bytes_with_a_frozen_head();
// The names of parameters without a gradient on a rank that has not used a head that another rank has used.
Evidence names_without_gradient();
// What ddp.explain() reports about that head on that rank.
Evidence users_of_the_head();
// Whether buckets are launched before backward has run all its nodes.
Evidence buckets_that_left_in_backward();
// Whether gradients are equal on all ranks between backward and step.
Evidence gradients_before_step();

}  // namespace brigade::lab
