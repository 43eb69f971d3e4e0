// Verdicts as text: how ranks exchange them, and one list of verdicts from those of all ranks.
#pragma once

#include <brigade/dist/diagnosis/verdict.h>

#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

std::string encode(const std::vector<Verdict>& verdicts);
// Throws DistError for a text that encode() did not make.
std::vector<Verdict> decode_verdicts(const std::string& text);

// Verdicts of the ranks (element r: of rank r) as one list: those that say the same are one, with the ranks joined. The
// same on every rank.
std::vector<Verdict> merge(std::span<const std::vector<Verdict>> by_rank);

}  // namespace brigade::dist
