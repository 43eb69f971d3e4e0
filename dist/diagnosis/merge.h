// One list of verdicts from those of all ranks.
#pragma once

#include <brigade/dist/errors/verdict.h>

#include <span>
#include <vector>

namespace brigade::dist {

// Verdicts of the ranks (element r: of rank r) as one list: those that say the same are one, with
// the ranks joined. The same on every rank.
std::vector<Verdict> merge(std::span<const std::vector<Verdict>> by_rank);

}  // namespace brigade::dist
