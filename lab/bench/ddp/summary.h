// The results of `brigade bench ddp`: its rank job, the rows and the plots.
#pragma once

#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/plot.h>

#include <nlohmann/json_fwd.hpp>

namespace brigade::lab::bench {

// --- The rank job of `brigade bench ddp`: every mode of a model on every backend, in turns.

// A rank job. Arguments: {"backends", "models": [names], "modes": [names], "limits", "link": "" or text for
// parse_link, "pin", "device": text for choose_device}. Result: a list with a row for each model, backend and mode:
// {"model", "backend", "mode", "bytes", "tensors", "buckets", "peers_known", "rounds", "noise"}, and lists of this
// rank's milliseconds with an entry for each round: "step_ms" and the parts of the backward, "compute_ms",
// "waiting_ms", "reducing_ms", "placing_ms", "on_the_way_ms", "hidden_ms".
inline constexpr const char* kDdpJob = "bench-ddp";

// --- The rows of `brigade bench ddp`, from the measurements of its ranks.

// From a run of kDdpJob: a row for each model, backend and mode: {"model", "backend", "mode", "bytes", "tensors",
// "buckets", "step_ms": STAT, "ratios": {"local": STAT, "strict": STAT}, "rounds", "noise"}, and with DDP
// "overlap", "comm_ms", "hidden_ms", "compute_ms", "waiting_ms", "reducing_ms", "placing_ms": STAT, "peers_known".
//
// A step takes as long as its slowest rank. Its ratios are taken within a round, relative to the modes local and
// strict of the same model and backend, where they were measured. The other times cover all ranks. "overlap" is the
// hidden share of all time on the way, over all rounds and ranks. Without "peers_known", "waiting_ms" is left out:
// it is part of the time on the way.
nlohmann::json ddp_rows(const RanksRun& run);

// --- The plots of `brigade bench ddp`: the step and the overlap over the bucket cap, and the step over the number of
// ranks.

// `rows`: the rows of the report. With cap modes: the step over the cap, one line per model, relative to the step
// without DDP if the mode local was measured, otherwise in ms. Without cap modes: the step in ms over the number of
// ranks, one line per model and mode.
Plot step_plot(const nlohmann::json& rows);
// The hidden share, in percent, over the cap.
Plot overlap_plot(const nlohmann::json& rows);

}  // namespace brigade::lab::bench
