// The names of ranks in texts, and those of parts of a group.
#include <brigade/dist/diagnosis/rank_names.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace brigade::dist {

std::string RankName::in_words() const {
  if (number == global) return std::to_string(number);
  return fmt::format("{} (global rank {})", number, global);
}

std::vector<int> RankNames::globals(int size) const {
  if (of_subgroup()) return globals_;
  std::vector<int> all;
  for (int r = 0; r < size; ++r)
    all.push_back((*this)(r).global);
  return all;
}

int RankNames::find_global(int global_rank, int size) const noexcept {
  for (int r = 0; r < size; ++r) {
    if ((*this)(r).global == global_rank) return r;
  }
  return -1;
}

std::string RankNames::legend(int size) const {
  std::vector<std::string> each;
  bool differ = false;
  for (int r = 0; r < size; ++r) {
    const RankName name = (*this)(r);
    differ = differ || name.number != name.global;
    each.push_back(fmt::format("{} is global rank {}", name.number, name.global));
  }
  return differ ? fmt::format("\nRanks are those of this process group: {}.", fmt::join(each, ", ")) : "";
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
