// Names of ranks in errors: their numbers in the group, plus their global numbers in the job if those differ. A group
// that is a step of a larger one (the ranks of one host, say) uses their numbers in the larger group, since users know
// no others.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brigade::dist {

// The name of one rank. In texts: "1", or "1 (global rank 3)".
struct RankName {
  RankName(int rank = 0) noexcept : number(rank), global(rank) {}  // NOLINT: a number is a RankName
  RankName(int number_in_group, int global_rank) noexcept : number(number_in_group), global(global_rank) {}

  int number;
  int global;  // in the group that subgroups are made from

  friend std::string to_string(const RankName& name) { return name.in_words(); }
  std::string in_words() const;
};

// The beginning of RankNames::legend.
inline constexpr std::string_view kLegend = "\nRanks are those of this process group: ";
// The global ranks that a text names ("rank 1 (global rank 3)"), in the order of the text.
std::vector<int> globals_in(std::string_view text);

class RankNames {
 public:
  // Rank r is called r.
  RankNames() = default;
  // For the ranks of a step: rank r is called numbers[r].
  RankNames(std::vector<int> numbers) : numbers_(std::move(numbers)) {}  // NOLINT: a list of numbers is a RankNames
  // Whether ranks are called by their own numbers.
  bool own() const noexcept { return numbers_.empty(); }
  // Whether the group, or the group that it is a step of, is a subgroup of another.
  bool of_subgroup() const noexcept { return !globals_.empty(); }
  RankName operator()(int rank) const noexcept {
    const auto at = static_cast<size_t>(rank);
    const int number = numbers_.empty() ? rank : numbers_[at];
    return {number, globals_.empty() ? number : globals_[at]};
  }
  // The global numbers of all ranks of a group of `size`.
  std::vector<int> globals(int size) const;
  // The rank with this global number; -1: none has it.
  int find_global(int global_rank, int size) const noexcept;

  // A line that lists the global ranks of a subgroup's ranks, for texts that use the numbers in the
  // subgroup; "" if the numbers are the same.
  std::string legend(int size) const;

  // The names in a subgroup of these ranks. `number` distinguishes it from other subgroups of this
  // group with the same ranks.
  RankNames subgroup(std::span<const int> ranks, uint64_t number = 0) const;
  // Identifies a subgroup, nested ones too, by its numbers: "4.2" is subgroup 2 of subgroup 4. "" for the first group.
  const std::string& identity() const noexcept { return identity_; }
  // The names in a step in which these ranks take part.
  RankNames step(std::span<const int> ranks) const;

 private:
  std::vector<int> numbers_;
  std::vector<int> globals_;
  std::string identity_;
};

}  // namespace brigade::dist

// Takes no format specification. (The formatter of strings, which has one, is complete only after <fmt/format.h>.)
template <>
struct fmt::formatter<brigade::dist::RankName> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const brigade::dist::RankName& name, Context& context) const {
    const std::string words = name.in_words();
    return std::copy(words.begin(), words.end(), context.out());
  }
};
