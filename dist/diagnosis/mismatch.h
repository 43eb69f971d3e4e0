// Why ranks met in different collectives: what each of them stands for, what all ranks did together
// before, and which explanations that leaves.
#pragma once

#include <brigade/dist/diagnosis/collective.h>

#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// What a rank of a group that met in different collectives can know.
struct Mismatch {
  std::span<const CollectiveInfo> by_rank;  // what each rank is in
  // What each rank said it was doing then; empty where nobody could be asked.
  std::vector<std::string> activities = {};
  // What all ranks have done together before, oldest first: the latest of it, of this same group.
  std::vector<CollectiveInfo> before = {};
};

// The explanations that are left.
struct MismatchReason {
  std::string likely;      // the only one, with what speaks for it; "" where there are several
  std::string advice;      // right for all that are left
  std::vector<int> ranks;  // to which it points; empty: to no rank more than to another
};

// The ranks differ as `usual` and `odd`, positions in by_rank. `names`: of the ranks in texts.
MismatchReason reason_for(const Mismatch& mismatch, size_t usual, size_t odd, const RankNames& names);

// What a rank says it does when it takes a step with gradients that it has kept to itself: "a step of
// SGD, with 2 backwards under no_sync not reduced".
std::string step_in_words(const std::string& optimizer, uint32_t local_backwards);
// The same of a backward: "of DDP(Net), of the forward at a.cpp:5".
std::string backward_in_words(const std::string& title, SourceLocation forward);
// And of one whose loss had no history: "a backward of DDP(Net), refused: its loss has no history".
std::string refused_backward_in_words(const std::string& title);
// What those of a step and of a backward add where the rank misses a wrapper: ", after the forward of DDP(Net) at a.cpp:5
// under no_grad from a.cpp:4", ", after the backward at a.cpp:9 reached nothing of DDP(Net)".
std::string missed_forward_in_words(const std::string& title, SourceLocation forward, SourceLocation opened);
std::string missed_backward_in_words(const std::string& title, SourceLocation backward);

}  // namespace brigade::dist
