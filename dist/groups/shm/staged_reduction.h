// An all_reduce of which some ranks hold their elements where the peers cannot reach them: piece by piece through slots in shared
// memory, so that a piece is still in the cache when it is reduced and when it is taken back.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/shm/control.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brigade::dist::shm {

// A counter that some rank must bring to this value before it goes on.
struct Awaited {
  std::atomic<uint32_t> RankBlock::*counter;
  uint32_t value;
};

// Of a piece, each rank first puts its elements into a slot of its own (counter `staged`), then reduces its share of
// the piece over all ranks' slots, in rank order, into all of them (`reduced`), and when all have, takes the results
// out. A rank whose elements can be reached has nothing to put in or to take out: its own memory stands for the slots.
// The bits are those of a reduction as a whole.
class StagedReduction {
 public:
  static constexpr size_t kPieceBytes = size_t{256} << 10;
  static constexpr uint32_t kSlots = 4;
  static constexpr size_t kFrom = size_t{4} << 20;  // up to here all of it stays in the cache, and one piece is as fast
  static constexpr size_t kRoomBytes = kSlots * kPieceBytes;  // what a rank that stages needs in shared memory

  // What a rank brings: its slots where it stages, else its elements.
  struct Source {
    char* memory = nullptr;
    bool staged = false;
  };
  // `data`: this rank's elements, as many on every rank. `first`: how many pieces this group has reduced before, alike
  // on every rank.
  StagedReduction(Control& control, int rank, std::vector<Source> sources, const Tensor& data, ReduceOp op,
                  uint32_t first);

  // As much as can be done now; true when something was.
  bool advance();
  bool done() const noexcept { return out_ == pieces_; }
  uint32_t pieces() const noexcept { return pieces_; }
  // What it waits for when advance() can do nothing.
  Awaited awaited() const noexcept;

 private:
  // Elements of a piece.
  int64_t begin_of(uint32_t piece) const noexcept { return static_cast<int64_t>(piece) * per_piece_; }
  int64_t length_of(uint32_t piece) const noexcept;
  // Where they lie in what rank r brings.
  char* place_of(size_t r, uint32_t piece) const noexcept;
  bool all_have(const Awaited& awaited) const noexcept;
  void reduce(uint32_t piece);

  Control& control_;
  int rank_;
  std::vector<Source> sources_;  // by rank
  Tensor data_;
  ReduceOp op_;
  uint32_t first_;
  int64_t per_piece_;
  uint32_t pieces_;
  // Pieces that this rank has put in, reduced its share of, taken out.
  uint32_t in_ = 0, reduced_ = 0, out_ = 0;
};

}  // namespace brigade::dist::shm
