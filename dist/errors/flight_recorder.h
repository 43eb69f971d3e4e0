// The flight recorder: the last collectives of one rank, with their descriptions. An error that ends a wait reports
// from it where each rank was; with BRIGADE_FLIGHT_RECORDER=FOLDER each rank also writes its entries to
// FOLDER/rank-R.json, and those of a subgroup to rank-G-in-A-B-C-group-N.json: G is the global rank, A, B, C are those
// of all members, and N is the identity of the subgroup, since several may have the same members.
#pragma once

#include <brigade/dist/errors/collective_info.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace brigade::dist {

// The group that the recorded collectives belong to.
struct RecordedGroup {
  int rank = 0;
  int size = 1;
  std::vector<int> global_ranks;  // of the members of a subgroup; empty for the group that subgroups are made from
  std::string identity;           // of a subgroup (RankNames::identity)
  std::string backend;
};

// Thread-safe.
class FlightRecorder {
 public:
  static constexpr size_t kEntries = 64;
  // Takes the next sequence number; returns it.
  uint64_t begin(CollectiveInfo info);
  void finish(uint64_t sequence);
  // Oldest first.
  std::vector<CollectiveInfo> entries() const;
  // Writes to the folder of BRIGADE_FLIGHT_RECORDER, if it is set; never throws.
  void write(const RecordedGroup& group, const std::string& reason) const noexcept;

 private:
  mutable std::mutex mutex_;
  std::deque<CollectiveInfo> entries_;
  uint64_t next_ = 1;
};

}  // namespace brigade::dist
