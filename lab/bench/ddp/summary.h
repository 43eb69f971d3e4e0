// The rows of `brigade bench ddp`, from the measurements of its ranks.
#pragma once

#include <brigade/lab/bench/on_ranks.h>

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace brigade::lab::bench {

// From a run of kDdpJob: a row for each model, backend and mode: {"model", "backend", "mode", "bytes", "tensors",
// "buckets", "step_ms": STAT, "ratios": {"local": STAT, "strict": STAT}, "rounds", "noise"}, and with DDP
// "overlap", "comm_ms", "hidden_ms", "compute_ms", "waiting_ms", "reducing_ms", "placing_ms": STAT, "peers_known".
//
// A step takes as long as its slowest rank. Its ratios are taken within a round, relative to the modes local and
// strict of the same model and backend, where they were measured. The other times cover all ranks. "overlap" is the
// hidden share of all time on the way, over all rounds and ranks. Without "peers_known", "waiting_ms" is left out:
// it is part of the time on the way.
nlohmann::json ddp_rows(const RanksRun& run);

}  // namespace brigade::lab::bench
