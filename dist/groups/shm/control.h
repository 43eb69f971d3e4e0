// The shared memory through which the ranks of one host synchronize: which rank has arrived at which collective, has
// done its part, or is gone.
#pragma once

#include <brigade/dist/errors/collective_info.h>
#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/groups/shm/texts.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace brigade::dist::shm {

inline constexpr int kMaxRanks = 64;
inline constexpr uint32_t kRing = 32;      // collectives that a rank may have posted and not finished
inline constexpr int kAllocations = 1024;  // segments per rank

// The location of a rank's data for its peers: one of its segments and an offset, or a plain address for threads of one
// process.
struct DataPlace {
  uint64_t address = 0;
  int32_t allocation = -1;
  uint32_t generation = 0;
  uint64_t offset = 0;
};

// Metadata of the collective that a rank has posted. A step of a larger group's collective describes the latter.
struct Header {
  DataPlace place;              // the location of its data, if it has any
  int64_t size = 0;             // number of elements of the data
  bool in_pieces = false;       // the place has slots, which carry its elements piece by piece (staged_reduction.h)
  uint32_t measured_slots = 0;  // of a bucket that is measured on the way (slot_sums.h), if all ranks request it
  CollectiveId id;              // compared before anything is summed
  int64_t posted_at = 0;        // ns of the steady clock
  uint64_t iteration = 0;       // for errors, like the line
  uint32_t line = 0;            // 0: not known
  uint32_t activity = 0;        // the rank's activity when it posted: an index into its `activities`
};

// The texts of a header, for errors.
struct HeaderTexts {
  uint32_t kept_sizes;
  std::array<int64_t, 8> size_of_part;
  std::array<DType, 8> dtype_of_part;
  Texts<1536> names;  // the file, purpose, owner and hook, and the program's words
};

// A rank's activity outside collectives: a RankActivity, with the texts of its names after the numbers. All zeros:
// none.
struct ActivityRecord {
  struct OfForward {
    uint32_t wrapper, line;
  };
  struct Missed {
    RankActivity::Missed::How how;
    uint32_t wrapper, line, opened;
  };
  int64_t since;  // ns of the steady clock
  Doing doing;
  uint8_t forwards, missed;
  uint32_t owner, local_backwards, after, where;  // an owner's number and line numbers
  OfForward forward[RankActivity::kMostForwards];
  Missed miss[RankActivity::kMostMissed];
  Texts<2048> names;
};

// A range of the memory that a rank has handed over.
struct Segment {
  std::atomic<uint64_t> offset{0};
  std::atomic<uint64_t> bytes{0};  // 0: none
  std::atomic<uint32_t> generation{0};
};

// Counters hold collective numbers from 1, or piece numbers; each has its own cache line and is written by its rank
// only.
struct RankBlock {
  alignas(64) std::atomic<uint32_t> arrived{0};
  alignas(64) std::atomic<uint32_t> done{0};
  // Pieces, counted over all staged reductions (staged_reduction.h).
  alignas(64) std::atomic<uint32_t> staged{0};
  alignas(64) std::atomic<uint32_t> reduced{0};
  // Number of peers that sleep on one of the counters; publishing needs a system call only if it is not 0.
  alignas(64) std::atomic<uint32_t> sleepers{0};
  alignas(64) std::atomic<Departure::How> end{Departure::How::Running};
  char exit_message[1024] = {};     // of an exception
  std::atomic<int32_t> blames{-1};  // the rank that caused this rank's failure
  // The rank's activity outside collectives: an index into `activities`, guarded by a lock. After a second, readers
  // give up and the rank takes the lock anyway (its holder may have died).
  std::atomic<uint32_t> activity_lock{0};
  std::atomic<uint32_t> activity{0};
  Header ring[kRing];
  int64_t done_at[kRing] = {};  // when the rank had done its part; ns of the steady clock
  Segment segments[kAllocations];
  HeaderTexts texts[kRing];  // of the headers in `ring`
  // Used round-robin: an entry that a header in `ring` refers to is not overwritten, and one more holds the current
  // activity.
  static constexpr uint32_t kActivities = kRing + 1;
  ActivityRecord activities[kActivities];
};

struct Control {
  RankBlock ranks[kMaxRanks];
};

}  // namespace brigade::dist::shm
