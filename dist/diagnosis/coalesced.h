// How collectives that are issued together are told in the descriptions that ranks compare, and what
// can be read in those of ranks that differ.
#pragma once

#include <brigade/dist/diagnosis/flight_recorder.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace brigade::dist {

// Of one that is posted by itself: "part 2 of 3", or "part 2 of 3: gradients". `part` is from 0.
std::string part_in_words(size_t part, size_t parts, std::string_view description);

// All of them as one, of the kind that they share: what they have in common, the number of elements of all, and the
// description "3 coalesced: 10, 20, 5 (1a2b3c4d)". The number at its end stands for everything that ranks compare of each
// part. Where they are many, "..." stands for the later ones.
CollectiveInfo as_one(std::span<const CollectiveInfo> parts);

// Where two descriptions are of collectives that are issued together on at least one of two ranks and differ: how, with
// the names of the two: "rank 0 issues 2 collectives together here, rank 1 3".
std::optional<std::string> how_parts_differ(const CollectiveInfo& a, std::string_view name_of_a,
                                            const CollectiveInfo& b, std::string_view name_of_b);

}  // namespace brigade::dist
