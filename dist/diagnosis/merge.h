// Merges the verdicts of all ranks into one list.
#pragma once

#include <brigade/dist/errors/verdict.h>

#include <span>
#include <vector>

namespace brigade::dist {

// Merges the verdicts of all ranks (element r: those of rank r) into one list: equal verdicts
// become one, with their ranks joined. The result is the same on every rank.
std::vector<Verdict> merge(std::span<const std::vector<Verdict>> by_rank);

}  // namespace brigade::dist
