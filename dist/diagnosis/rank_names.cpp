// The names of ranks in texts, and those of parts of a group.
#include <brigade/dist/diagnosis/rank_names.h>

#include <fmt/format.h>

namespace brigade::dist {

std::string RankName::in_words() const {
  if (number == global) return std::to_string(number);
  return fmt::format("{} (global rank {})", number, global);
}

int RankNames::find_global(int global_rank, int size) const noexcept {
  for (int r = 0; r < size; ++r) {
    if ((*this)(r).global == global_rank) return r;
  }
  return -1;
}

RankNames RankNames::subgroup(std::span<const int> ranks) const {
  RankNames names;
  for (const int rank : ranks)
    names.globals_.push_back((*this)(rank).global);
  return names;
}

RankNames RankNames::step(std::span<const int> ranks) const {
  RankNames names;
  for (const int rank : ranks) {
    const RankName name = (*this)(rank);
    names.numbers_.push_back(name.number);
    if (of_subgroup()) names.globals_.push_back(name.global);
  }
  return names;
}

}  // namespace brigade::dist
