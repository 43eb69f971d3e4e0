// Advances the pieces of a staged all_reduce as far as the peers allow.
#include <brigade/dist/groups/shm/staged_reduction.h>

#include <brigade/dist/groups/arithmetic.h>
#include <brigade/dist/groups/shm/counter.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

namespace brigade::dist::shm {

StagedReduction::StagedReduction(Control& control, int rank, std::vector<Source> sources, const Tensor& data,
                                 ReduceOp op, uint32_t first)
    : control_(control),
      rank_(rank),
      sources_(std::move(sources)),
      data_(data),
      op_(op),
      first_(first),
      per_piece_(static_cast<int64_t>(kPieceBytes / data.itemsize())),
      pieces_(static_cast<uint32_t>((data.numel() + per_piece_ - 1) / per_piece_)) {}

int64_t StagedReduction::length_of(uint32_t piece) const noexcept {
  return std::min(per_piece_, data_.numel() - begin_of(piece));
}

char* StagedReduction::place_of(size_t r, uint32_t piece) const noexcept {
  const size_t slot = sources_[r].staged ? piece % kSlots : piece;
  return sources_[r].memory + slot * kPieceBytes;
}

bool StagedReduction::all_have(const Awaited& awaited) const noexcept {
  for (size_t r = 0; r < sources_.size(); ++r) {
    if (!reached(control_.ranks[r].*awaited.counter, awaited.value)) return false;
  }
  return true;
}

void StagedReduction::reduce(uint32_t piece) {
  std::array<void*, kMaxRanks> places{};
  for (size_t r = 0; r < sources_.size(); ++r)
    places[r] = place_of(r, piece);
  reduce_share(rank_, std::span(places).first(sources_.size()), length_of(piece), data_.dtype(), op_);
}

Awaited StagedReduction::awaited() const noexcept {
  if (reduced_ < in_) return {&RankBlock::staged, first_ + reduced_ + 1};
  return {&RankBlock::reduced, first_ + out_ + 1};
}

bool StagedReduction::advance() {
  RankBlock& own = control_.ranks[rank_];
  const bool staged = sources_[static_cast<size_t>(rank_)].staged;
  const size_t mine = static_cast<size_t>(rank_);
  char* const data = static_cast<char*>(data_.raw_data());
  bool moved = false;
  // The oldest piece first: it is still in the cache, and its slot is needed.
  while (!done()) {
    if (out_ < reduced_ && all_have({&RankBlock::reduced, first_ + out_ + 1})) {
      if (staged)
        std::memcpy(data + out_ * kPieceBytes, place_of(mine, out_),
                    static_cast<size_t>(length_of(out_)) * data_.itemsize());
      ++out_;
    } else if (reduced_ < in_ && all_have({&RankBlock::staged, first_ + reduced_ + 1})) {
      reduce(reduced_);
      ++reduced_;
      publish(own, own.reduced, first_ + reduced_);
    } else if (in_ < pieces_ && (!staged || in_ < out_ + kSlots)) {
      if (staged) {
        std::memcpy(place_of(mine, in_), data + in_ * kPieceBytes,
                    static_cast<size_t>(length_of(in_)) * data_.itemsize());
        ++in_;
      } else {
        in_ = pieces_;
      }
      publish(own, own.staged, first_ + in_);
    } else {
      return moved;
    }
    moved = true;
  }
  return moved;
}

}  // namespace brigade::dist::shm
