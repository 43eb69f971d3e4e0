// The memory that the ranks of one host share to keep in step: who has arrived at which collective,
// who has done its part, who is gone.
#pragma once

#include <brigade/dist/errors/collective_info.h>
#include <brigade/dist/errors/departure.h>
#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/groups/shm/texts.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace brigade::dist::shm {

inline constexpr int kMaxRanks = 64;
inline constexpr uint32_t kRing = 32;      // collectives that a rank may have posted and not finished
inline constexpr int kAllocations = 1024;  // segments per rank

// Where the peers find a rank's data: a segment of its own and an offset, or a plain address for
// threads of one process.
struct DataPlace {
  uint64_t address = 0;
  int32_t allocation = -1;
  uint32_t generation = 0;
  uint64_t offset = 0;
};

// What a rank says of the collective it has posted. A step of a collective of a larger group says
// what that one is.
struct Header {
  DataPlace place;         // where its data is,
  int64_t size = 0;        // if it has any: elements
  bool in_pieces = false;  // the place has slots, through which its elements come piece by piece (staged_reduction.h)
  uint32_t measured_slots = 0;  // of a bucket that is measured on the way (slot_sums.h), if all ranks want that
  CollectiveId id;              // compared before anything is summed
  int64_t posted_at = 0;        // ns of the steady clock
  uint64_t iteration = 0;       // for errors, as the line
  uint32_t line = 0;            // 0: not known
  uint32_t activity = 0;        // what the rank did when it posted it: a place in its `activities`
};

// What errors say of it beside the numbers.
struct HeaderTexts {
  uint32_t kept_sizes;
  std::array<int64_t, 8> size_of_part;
  std::array<DType, 8> dtype_of_part;
  Texts<1536> names;  // the file, purpose, owner and hook, and the program's words
};

// What a rank does outside of collectives: RankActivity, with the texts of its names behind the numbers. Zeros: nothing.
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
  uint32_t owner, local_backwards, after, where;  // numbers of an owner, of lines
  OfForward forward[RankActivity::kMostForwards];
  Missed miss[RankActivity::kMostMissed];
  Texts<2048> names;
};

// A stretch of the memory that a rank has handed over.
struct Segment {
  std::atomic<uint64_t> offset{0};
  std::atomic<uint64_t> bytes{0};  // 0: none
  std::atomic<uint32_t> generation{0};
};

// Counters are collective numbers from 1, or numbers of pieces; each lies in a cache line of its own, written by its rank
// only.
struct RankBlock {
  alignas(64) std::atomic<uint32_t> arrived{0};
  alignas(64) std::atomic<uint32_t> done{0};
  // Pieces of all staged reductions together, see staged_reduction.h.
  alignas(64) std::atomic<uint32_t> staged{0};
  alignas(64) std::atomic<uint32_t> reduced{0};
  // Peers that sleep on one of the counters: only then a publication needs a system call.
  alignas(64) std::atomic<uint32_t> sleepers{0};
  alignas(64) std::atomic<Departure::How> end{Departure::How::Running};
  char exit_message[1024] = {};     // of an exception
  std::atomic<int32_t> blames{-1};  // the rank because of which this one failed
  // What the rank does outside of collectives: a place in `activities`, guarded by a lock that readers give up on and
  // the rank takes after a second (its holder may have died).
  std::atomic<uint32_t> activity_lock{0};
  std::atomic<uint32_t> activity{0};
  Header ring[kRing];
  int64_t done_at[kRing] = {};  // when the rank was done with its part; ns of the steady clock
  Segment segments[kAllocations];
  HeaderTexts texts[kRing];  // of the headers in `ring`
  // Used in turn: an entry that a header in `ring` refers to is not overwritten, and one more holds the current activity.
  static constexpr uint32_t kActivities = kRing + 1;
  ActivityRecord activities[kActivities];
};

struct Control {
  RankBlock ranks[kMaxRanks];
};

}  // namespace brigade::dist::shm
