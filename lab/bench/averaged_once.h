// What replicas need whose gradients stay local on purpose, since that is measured: those that nothing ever averages are
// told when training ends.
#pragma once

#include <brigade/dist/ddp/model_averaging.h>

#include <utility>

namespace brigade::lab::bench {

// To be called after each step: averages after the first alone.
inline dist::PeriodicModelAverager averaged_once(dist::ProcessGroupPtr group) {
  return {std::move(group), uint64_t{1} << 40};
}

}  // namespace brigade::lab::bench
