// The flight recorder: the last collectives of one rank, with what they were about. When a wait
// ends in an error it says who was where; with BRIGADE_FLIGHT_RECORDER=FOLDER each rank also writes
// its entries to FOLDER/rank-R.json, and those of a subgroup to rank-G-in-A-B-C-group-N.json: G is the global rank, A, B, C
// those of all members, and N the identity of the subgroup, since several may have the same members.
#pragma once

#include <brigade/core/place.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace brigade::dist {

// One collective, as one rank posted it.
struct CollectiveInfo {
  uint64_t sequence = 0;    // per group, from 1
  std::string kind;         // "all_reduce"
  std::string op;           // "avg"; "" where there is none
  std::string dtype;        // "float32"; "" for a barrier
  int64_t count = 0;        // elements
  int root = -1;            // broadcast; -1 elsewhere
  std::string description;  // "bucket 0 of DDP(Net)"
  uint64_t iteration = 0;
  Place where;           // the user's call
  int64_t posted = 0;    // ns of the steady clock
  int64_t finished = 0;  // 0: in flight

  // What all ranks must have in common.
  bool matches(const CollectiveInfo& other) const noexcept {
    return kind == other.kind && op == other.op && dtype == other.dtype && count == other.count && root == other.root &&
           description == other.description;
  }
};
// "all_reduce(avg) of 100 x float32 "bucket 0 of DDP(Net)", number 3, at train.cpp:12 (collective
// 7)"
std::string in_words(const CollectiveInfo& info);

// Whose collectives they are.
struct RecordedGroup {
  int rank = 0;
  int size = 1;
  std::vector<int> global_ranks;  // of the members of a subgroup; empty for the group from which groups are made
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
  // To the folder of BRIGADE_FLIGHT_RECORDER, if it is set; never throws.
  void write(const RecordedGroup& group, const std::string& reason) const noexcept;

 private:
  mutable std::mutex mutex_;
  std::deque<CollectiveInfo> entries_;
  uint64_t next_ = 1;
};

}  // namespace brigade::dist
