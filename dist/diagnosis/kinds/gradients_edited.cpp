// gradients_edited: reduced gradients were changed by hand and differ between ranks since then.
//
// Severity: error
// When: before `step()`
// Causes: `edited_by_hand`: after the reduction, so that the values differ between ranks
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {
namespace {

bool makes(const StepOnRank& step, const StepOnRank::Edit& edit) {
  return std::any_of(step.edits.begin(), step.edits.end(), [&](const StepOnRank::Edit& other) {
    return other.parameter == edit.parameter && other.op == edit.op && other.where == edit.where;
  });
}

bool is_everywhere(std::span<const StepOnRank> steps, const StepOnRank::Edit& edit) {
  return steps.size() > 1 &&
         std::all_of(steps.begin(), steps.end(), [&](const StepOnRank& step) { return makes(step, edit); });
}

// Whether a rank whose gradient agrees with that of most ranks made the edit: then the edit had no effect.
bool had_no_effect(std::span<const StepOnRank> steps, const std::vector<int>& odd, size_t rank,
                   const StepOnRank::Edit& edit) {
  if (odd.empty()) return false;
  const auto is_odd = [&](size_t r) { return std::find(odd.begin(), odd.end(), static_cast<int>(r)) != odd.end(); };
  if (!is_odd(rank)) return true;
  for (size_t r = 0; r < steps.size(); ++r) {
    if (!is_odd(r) && makes(steps[r], edit)) return true;
  }
  return false;
}

// Whether all ranks of the majority made the edit and no odd rank did: the odd ranks left it out.
bool is_left_out(std::span<const StepOnRank> steps, const std::vector<int>& odd, const StepOnRank::Edit& edit) {
  if (odd.empty()) return false;
  for (size_t r = 0; r < steps.size(); ++r) {
    const bool is_odd = std::ranges::find(odd, static_cast<int>(r)) != odd.end();
    if (makes(steps[r], edit) == is_odd) return false;
  }
  return true;
}

// Whether the rank's gradient agrees with that of most ranks. If all ranks made an edit, this rank's is not to blame.
bool is_like_most(const std::vector<int>& odd, size_t rank) {
  return !odd.empty() && std::ranges::find(odd, static_cast<int>(rank)) == odd.end();
}

bool is_set_by_hand(std::span<const StepOnRank> steps, const std::string& parameter) {
  return std::any_of(steps.begin(), steps.end(), [&](const StepOnRank& step) {
    return std::any_of(step.set_by_hand.begin(), step.set_by_hand.end(),
                       [&](const StepOnRank::SetByHand& set) { return set.parameter == parameter; });
  });
}

// "mul_ at a.cpp:5, then add_ at a.cpp:6": it is unknown which of several edits of one gradient made it differ.
std::string in_words(std::span<const StepOnRank::Edit> edits) {
  std::vector<std::string> parts;
  for (const StepOnRank::Edit& edit : edits) {
    const std::string part = edit.in_words();
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
  }
  return first_of(parts, 4, ", then ");
}

// The edits of one gradient on one rank.
struct EditsOfRank {
  size_t rank;
  std::vector<StepOnRank::Edit> edits;
};

// Returns the first blamed edit whose operation not every rank applied, or else the first one. Operations that every
// rank applied may be the same code at different lines.
const StepOnRank::Edit& most_telling(std::span<const StepOnRank> steps, std::span<const EditsOfRank> blamed) {
  for (const EditsOfRank& each : blamed) {
    for (const StepOnRank::Edit& edit : each.edits) {
      const bool is_common = std::ranges::all_of(steps, [&](const StepOnRank& step) {
        return std::ranges::any_of(step.edits, [&](const StepOnRank::Edit& other) {
          return other.parameter == edit.parameter && other.op == edit.op;
        });
      });
      if (!is_common) return edit;
    }
  }
  return blamed.front().edits.front();
}

// Fills in `cause` for the edits of one gradient that not all ranks made, or that gave different values (`everywhere`).
void blame(std::span<const StepOnRank> steps, std::span<const EditsOfRank> blamed, bool everywhere, Cause& cause) {
  const StepOnRank::Edit& edit = most_telling(steps, blamed);
  cause.op = edit.op;
  cause.module = module_of(edit.parameter);
  cause.place = edit.where;
  const EditsOfRank& first = blamed.front();
  if (everywhere) {
    std::vector<int> ranks;
    for (const EditsOfRank& each : blamed)
      ranks.push_back(static_cast<int>(each.rank));
    cause.text =
        fmt::format("{} changed values after the reduction, on {}", in_words(first.edits),
                    ranks.size() == steps.size() ? "every rank to other values"
                                                 : ranks_in_words(ranks) + " to other values than on the others");
  } else if (blamed.size() == 1) {
    cause.text =
        fmt::format("{} changed values on rank {} only, after the reduction", in_words(first.edits), first.rank);
  } else {
    std::vector<std::pair<std::string, std::vector<int>>> ranks;  // by what they did
    for (const EditsOfRank& each : blamed) {
      const std::string words = in_words(each.edits);
      auto known = std::ranges::find_if(ranks, [&](const auto& other) { return other.first == words; });
      if (known == ranks.end()) known = ranks.insert(ranks.end(), {words, {}});
      known->second.push_back(static_cast<int>(each.rank));
    }
    std::vector<std::string> parts;
    for (const auto& [words, those] : ranks)
      parts.push_back(fmt::format("{} ({})", words, ranks_in_words(those)));
    cause.text =
        fmt::format("{} changed values after the reduction, and not on every rank alike", first_of(parts, 4, ", "));
  }
}

void add(std::vector<std::vector<EditsOfRank>>& blamed, size_t rank, const StepOnRank::Edit& edit) {
  auto known = std::ranges::find_if(
      blamed, [&](const auto& each) { return each.front().edits.front().parameter == edit.parameter; });
  if (known == blamed.end()) known = blamed.insert(blamed.end(), std::vector<EditsOfRank>());
  if (known->empty() || known->back().rank != rank) known->push_back({rank, {}});
  known->back().edits.push_back(edit);
}

bool are_alike(std::span<const EditsOfRank> a, std::span<const EditsOfRank> b) {
  return std::ranges::equal(a, b, [](const EditsOfRank& x, const EditsOfRank& y) {
    return x.rank == y.rank && in_words(x.edits) == in_words(y.edits);
  });
}

// Returns one verdict for each way in which gradients were edited, with all gradients edited that way.
std::vector<Verdict> by_cause(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart,
                              std::span<const std::vector<EditsOfRank>> blamed, bool everywhere) {
  std::vector<Verdict> verdicts;
  std::vector<const std::vector<EditsOfRank>*> ways;  // of each verdict
  for (const std::vector<EditsOfRank>& of_parameter : blamed) {
    std::vector<int> ranks;
    for (const EditsOfRank& each : of_parameter)
      ranks.push_back(static_cast<int>(each.rank));
    auto known = std::ranges::find_if(ways, [&](const auto* way) { return are_alike(*way, of_parameter); });
    if (known == ways.end()) {
      known = ways.insert(ways.end(), &of_parameter);
      Verdict& verdict =
          verdicts.emplace_back(new_verdict("gradients_edited", Severity::Error, CauseKind::EditedByHand));
      verdict.what = "Gradients differ between the ranks";
      blame(steps, of_parameter, everywhere, verdict.cause);
      verdict.ranks = ranks;
      verdict.advice = "edit reduced gradients on every rank alike, or in a gradient hook";
    }
    const GradientsApart& differs = *find(apart, of_parameter.front().edits.front().parameter);
    verdicts[static_cast<size_t>(known - ways.begin())].parameters.push_back(about(differs.parameter, {}, ranks));
  }
  return verdicts;
}

}  // namespace

StepOnRank::Edit StepOnRank::Edit::unseen(const std::string& parameter) { return {parameter, "bump_version", {}}; }

std::string StepOnRank::Edit::in_words() const {
  if (op == "bump_version" && !where) return "a write that left no line (through data_ptr(), for one)";
  return fmt::format("{} at {}", op, to_string(where));
}

const GradientsApart* find(std::span<const GradientsApart> apart, const std::string& parameter) {
  const auto found = std::find_if(apart.begin(), apart.end(),
                                  [&](const GradientsApart& each) { return each.parameter.name == parameter; });
  return found == apart.end() ? nullptr : &*found;
}

std::vector<Verdict> gradients_edited(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart) {
  // How an edit explains the difference, best first. OnSome: only some ranks made it. LeftOut: exactly the ranks whose
  // gradients differ from most did not make it. OnAll: all ranks made it, with different results. Vain: it seems to
  // have had no effect, which is wrong if the majority is wrong.
  enum class Says : uint8_t { OnSome, LeftOut, OnAll, Vain };
  const auto says = [&](const GradientsApart& differs, size_t rank, const StepOnRank::Edit& edit) {
    if (is_everywhere(steps, edit)) return Says::OnAll;
    if (!had_no_effect(steps, differs.odd, rank, edit)) return Says::OnSome;
    return is_left_out(steps, differs.odd, edit) ? Says::LeftOut : Says::Vain;
  };
  for (const Says wanted : {Says::OnSome, Says::LeftOut, Says::OnAll, Says::Vain}) {
    std::vector<std::vector<EditsOfRank>> blamed;  // by parameter, in the order of the edits
    for (size_t r = 0; r < steps.size(); ++r) {
      for (const StepOnRank::Edit& edit : steps[r].edits) {
        const GradientsApart* const differs = find(apart, edit.parameter);
        if (!differs || says(*differs, r, edit) != wanted) continue;
        // A gradient that was set by hand gets the verdict of gradients_set_by_hand() instead.
        if (wanted == Says::OnAll && (is_set_by_hand(steps, edit.parameter) || is_like_most(differs->odd, r))) continue;
        add(blamed, r, edit);
      }
    }
    if (!blamed.empty()) return by_cause(steps, apart, blamed, wanted == Says::OnAll);
  }
  return {};
}

}  // namespace brigade::dist
