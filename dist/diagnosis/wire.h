// What ranks tell each other about what they saw, as JSON.
#pragma once

#include <brigade/dist/diagnosis/flight_recorder.h>
#include <brigade/dist/diagnosis/json.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/report.h>

namespace brigade::dist {

// Objects by the names of their members. Numbers for the enums: every rank runs the same program.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Cause, kind, op, place, module, text, note)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ParameterVerdict, name, bytes, ready_ranks, missing_ranks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Verdict, kind, message, parameters, ranks, cause, advice, severity, iteration)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepOnRank::Edit, parameter, op, where)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepOnRank::SetByHand, parameter, where)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepOnRank::Member, parameter, group)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AutocastOnRank, is_known, dtypes, where)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepOnRank, name, where, options, gradients, edits, set_by_hand, writes, buffers,
                                   state_was_loaded, state_loaded_at, state_writes, members, hook_probes,
                                   modes_are_known, evaluating, in_join, since_join, optimizer, made_at, autocast,
                                   moved_by_others)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CollectiveInfo, sequence, kind, op, dtype, count, root, description, iteration,
                                   where)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankReport, rank, round, backward, failure, ready, reached, recorded, recorded_at,
                                   causes)

}  // namespace brigade::dist
