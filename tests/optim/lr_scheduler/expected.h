// The results of torch.optim.lr_scheduler, from tests/optim/data/schedules.json (written by
// tests/reference/generate_schedules.py).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace brigade::test {

struct ExpectedEpoch {
  int64_t epoch;
  std::vector<double> lr, momentum;  // per group; no momentum for ReduceLROnPlateau
  double best;                       // ReduceLROnPlateau: the best metric so far
};
// Keyed by the names in schedules.h; epochs ascend.
using ExpectedEntries = std::map<std::string, std::vector<ExpectedEpoch>>;

struct Expected {
  ExpectedEntries schedules, plateaus;
  std::vector<double> metrics;  // for ReduceLROnPlateau, per epoch
};
// Throws ValueError if an entry lacks an epoch or the numbers of a group, IoError for a missing file, and nlohmann's
// errors for malformed JSON.
Expected expected();

}  // namespace brigade::test
