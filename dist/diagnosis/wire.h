// JSON serialization of what ranks exchange about a backward and a step.
#pragma once

#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/dist/errors/wire.h>

namespace brigade::dist {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepOnRank::Edit, parameter, op, where)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepOnRank::SetByHand, parameter, where)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepOnRank::Member, parameter, group)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AutocastOnRank, is_known, dtypes, where)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepOnRank, name, where, options, gradients, edits, set_by_hand, writes, buffers,
                                   updated_buffers, state_was_loaded, state_loaded_at, state_writes, members,
                                   hook_probes, modes_are_known, evaluating, in_join, since_join, optimizer, made_at,
                                   autocast, moved_by_others, options_set, made_with)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankReport, rank, round, backward, failure, ready, reached, elsewhere, recorded,
                                   recorded_at, keeps_graph, shares_optimizer, causes, called)

}  // namespace brigade::dist
