// What torch.optim.lr_scheduler gave: tests/optim/data/schedules.json, which tests/reference/generate_schedules.py
// writes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace brigade::test {

struct ExpectedEpoch {
  int64_t epoch;
  std::vector<double> lr, momentum;  // of each group; ReduceLROnPlateau: no momentum
  double best;                       // ReduceLROnPlateau: the best metric so far
};
// By the names of schedules.h; the epochs ascend.
using ExpectedEntries = std::map<std::string, std::vector<ExpectedEpoch>>;

struct Expected {
  ExpectedEntries schedules, plateaus;
  std::vector<double> metrics;  // ReduceLROnPlateau: of each epoch
};
// Throws ValueError where an entry lacks an epoch or the numbers of a group, IoError for a missing file, and nlohmann's
// errors for one of another form.
Expected expected();

}  // namespace brigade::test
