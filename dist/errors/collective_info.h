// CollectiveInfo: a collective as numbers, which ranks compare, and the names that go with them, which people read.
//
// Two ranks are in the same collective if and only if their CollectiveIds are equal. No text is compared or searched:
// describe() and in_words() format the numbers at the end.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/place.h>
#include <brigade/dist/errors/name.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::dist {

enum class ReduceOp : uint8_t { Sum, Avg, Max, Min };
const char* name(ReduceOp op) noexcept;  // "sum"

enum class CollectiveKind : uint8_t { AllReduce, Broadcast, AllGather, ReduceScatter, Barrier, NewGroup, Message };
const char* name(CollectiveKind kind) noexcept;  // "all_reduce"

// What a collective is issued for.
enum class Phase : uint8_t {
  Program,       // a call of the program itself
  Construction,  // of a wrapper or an optimizer that the ranks make together
  Buffers,       // of a wrapper's forward
  Layer,         // a layer that exchanges values: SyncBatchNorm
  Backward,      // buckets, and exchanges about a backward
  Report,        // the error of a backward
  Step,          // the agreement on an optimizer's step
  Optimizer,     // what an optimizer exchanges: ZeroRedundancyOptimizer
  Join,
  EndOfJoin,
  Averaging,  // of models
  Inspection  // explanations, timelines, checks of values
};

// The object that a collective belongs to, the same on every rank. Printed as "DDP(Net)", or "DDP(Net)#2" for the
// second one of that name on a group.
struct Owner {
  Name name = {};
  uint32_t number = 1;

  bool operator==(const Owner&) const = default;
};
std::string in_words(const Owner& owner);

// What a collective of the library is about.
struct Topic {
  Phase phase = Phase::Program;
  Name purpose = {};  // "bucket"
  Owner owner = {};
  int32_t index = -1;  // of the bucket; -1: none
  Name hook = {};      // the communication hook that sends it

  bool operator==(const Topic&) const = default;
};
// "bucket 2 of DDP(Net)#2, by hook fp16_compress_hook"; "" for a call of the program.
std::string in_words(const Topic& topic);
// Topic::purpose of a bucket of gradients.
const Name& bucket_purpose();

// What ranks compare. Numbers only, without padding, so that the bytes can be hashed.
struct CollectiveId {
  static constexpr uint8_t kNone = 0xFF;     // no operation, no dtype
  static constexpr uint8_t kSeveral = 0xFE;  // coalesced collectives that differ in it

  uint64_t sequence = 0;                      // in its group, from 1
  int64_t count = 0;                          // elements
  uint64_t purpose = 0, owner = 0, hook = 0;  // Name::hash
  uint64_t text = 0;                          // hash of the program's own description
  uint64_t parts_digest = 0;                  // coalesced collectives: digest of everything in each of them
  int32_t root = -1;                          // broadcast; -1 elsewhere
  int32_t index = -1;
  uint32_t owner_number = 1;
  uint32_t part = 0, parts = 0;  // see CollectiveInfo
  CollectiveKind kind = CollectiveKind::Barrier;
  uint8_t op = kNone;     // a ReduceOp
  uint8_t dtype = kNone;  // a DType
  Phase phase = Phase::Program;

  bool operator==(const CollectiveId&) const = default;
  uint64_t digest() const noexcept;
};
static_assert(sizeof(CollectiveId) == 7 * 8 + 5 * 4 + 4);

// One collective, as one rank posted it.
struct CollectiveInfo {
  uint64_t sequence = 0;  // per group, from 1
  CollectiveKind kind = CollectiveKind::Barrier;
  std::optional<ReduceOp> op = {};
  std::optional<DType> dtype = {};  // none for a barrier
  int64_t count = 0;                // elements
  int root = -1;                    // broadcast; -1 elsewhere
  Topic topic = {};                 // of the library's own collectives
  std::string text = {};            // the program's own description of its call, if it gave one
  uint64_t text_hash = 0;           // of the whole text, if another rank truncated it; 0: use `text`
  // Coalesced collectives. Combined into one: `parts` of them, with the first sizes in `sizes`; mixed_op and
  // mixed_dtype say whether their operations and dtypes differ. Posted by itself: number `part`, from 1, of `parts`.
  uint32_t part = 0, parts = 0;
  struct Part {
    int64_t count = 0;
    DType dtype = DType::Float32;
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> sizes = {};
  uint64_t parts_digest = 0;
  bool mixed_op = false, mixed_dtype = false;  // of the parts
  uint64_t iteration = 0;                      // shown, not compared; 0: none
  Place where = {};                            // the user's call
  int64_t posted = 0;                          // ns of the steady clock
  int64_t finished = 0;                        // 0: in flight

  CollectiveId id() const noexcept;
  // Whether both are the same call, regardless of their sequence numbers.
  bool matches(const CollectiveInfo& other) const noexcept;
};
// "bucket 0 of DDP(Net)", "part 2 of 3: gradients", "3 coalesced: 10, 20, 5"; "" without a description.
std::string describe(const CollectiveInfo& info);
// "avg", "float32"; "" for none, "several" and "several dtypes" for parts that differ.
std::string op_in_words(const CollectiveInfo& info);
std::string dtype_in_words(const CollectiveInfo& info);
// "all_reduce(avg) of 100 x float32 "bucket 0 of DDP(Net)", number 3, at train.cpp:12 (collective 7)"
std::string in_words(const CollectiveInfo& info);
// The same without "(collective 7)".
std::string call_in_words(const CollectiveInfo& info);

// --- Coalesced collectives: combined into one for comparison between ranks, and how those of two ranks differ.

// Combines the parts into one collective of the kind that they share: their common fields, the total number of
// elements, and a digest of everything that ranks compare of each part. Keeps the sizes of the first eight parts for
// texts.
CollectiveInfo as_one(std::span<const CollectiveInfo> parts);

// Describes how two collectives of one kind differ, if at least one of them is coalesced, with the names of the two
// ranks: "rank 0 issues 2 collectives together here, rank 1 3".
std::optional<std::string> how_parts_differ(const CollectiveInfo& a, std::string_view name_of_a,
                                            const CollectiveInfo& b, std::string_view name_of_b);

}  // namespace brigade::dist
