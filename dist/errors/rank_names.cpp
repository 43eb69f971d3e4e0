// The names of ranks in texts, and those of parts of a group.
#include <brigade/dist/errors/rank_names.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <system_error>

namespace brigade::dist {

std::string RankName::in_words() const {
  if (number == global) return std::to_string(number);
  return fmt::format("{} (global rank {})", number, global);
}

std::vector<int> globals_in(std::string_view text) {
  constexpr std::string_view kBefore = "global rank ";
  std::vector<int> found;
  for (size_t at = text.find(kBefore); at != text.npos; at = text.find(kBefore, at)) {
    at += kBefore.size();
    int global_rank = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), global_rank);
    if (error == std::errc()) found.push_back(global_rank);
  }
  return found;
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
  return differ ? fmt::format("{}{}.", kLegend, fmt::join(each, ", ")) : "";
}

RankNames RankNames::subgroup(std::span<const int> ranks, uint64_t number) const {
  RankNames names;
  names.identity_ = fmt::format("{}{}{}", identity_, identity_.empty() ? "" : ".", number);
  for (const int rank : ranks)
    names.globals_.push_back((*this)(rank).global);
  return names;
}

RankNames RankNames::step(std::span<const int> ranks) const {
  RankNames names;
  names.identity_ = identity_;
  for (const int rank : ranks) {
    const RankName name = (*this)(rank);
    names.numbers_.push_back(name.number);
    if (of_subgroup()) names.globals_.push_back(name.global);
  }
  return names;
}

}  // namespace brigade::dist
