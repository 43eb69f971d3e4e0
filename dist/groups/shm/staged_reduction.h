// An all_reduce in which the peers cannot access the elements of some ranks. Pieces go through slots in shared memory,
// so that a piece is still in the cache when it is reduced and when it is copied back.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/shm/control.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brigade::dist::shm {

// A counter that must reach `value` on every rank before this rank can proceed.
struct Awaited {
  std::atomic<uint32_t> RankBlock::*counter;
  uint32_t value;
};

// For each piece, each rank first copies its elements into one of its slots (counter `staged`), then reduces its share
// of the piece over all ranks' slots, in rank order, into all of them (`reduced`), and when all ranks have done so,
// copies the results out. A rank whose elements are accessible copies nothing: its own memory serves as the slots. The
// result is bitwise equal to an unstaged reduction.
class StagedReduction {
 public:
  static constexpr size_t kPieceBytes = size_t{256} << 10;
  static constexpr uint32_t kSlots = 4;
  static constexpr size_t kFrom = size_t{4} << 20;  // up to this size one piece is as fast: it stays in the cache
  static constexpr size_t kRoomBytes = kSlots * kPieceBytes;  // shared memory of a rank that stages

  // A rank's data: its slots if it stages, else its elements.
  struct Source {
    char* memory = nullptr;
    bool staged = false;
  };
  // `data`: this rank's elements, the same number on every rank. `first`: the number of pieces that this group has
  // already reduced, the same on every rank.
  StagedReduction(Control& control, int rank, std::vector<Source> sources, const Tensor& data, ReduceOp op,
                  uint32_t first);

  // Does as much as possible now; returns whether there was progress.
  bool advance();
  bool done() const noexcept { return out_ == pieces_; }
  uint32_t pieces() const noexcept { return pieces_; }
  // What this rank waits for when advance() makes no progress.
  Awaited awaited() const noexcept;

 private:
  // The elements of a piece.
  int64_t begin_of(uint32_t piece) const noexcept { return static_cast<int64_t>(piece) * per_piece_; }
  int64_t length_of(uint32_t piece) const noexcept;
  // The address of a piece in the data of rank r.
  char* place_of(size_t r, uint32_t piece) const noexcept;
  bool all_have(const Awaited& awaited) const noexcept;
  void reduce(uint32_t piece);

  Control& control_;
  int rank_;
  std::vector<Source> sources_;  // indexed by rank
  Tensor data_;
  ReduceOp op_;
  uint32_t first_;
  int64_t per_piece_;
  uint32_t pieces_;
  // Number of pieces that this rank has copied in, reduced its share of, and copied out.
  uint32_t in_ = 0, reduced_ = 0, out_ = 0;
};

}  // namespace brigade::dist::shm
