// The rows of `brigade bench ddp`, from what its ranks have measured.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace brigade::lab::bench {

// `ranks`: the results of kDdpJob, one for each rank. A row for each model and mode: {"model",
// "mode", "bytes", "tensors", "buckets", "step_ms": STAT, "ratios": {"local": STAT, "strict": STAT},
// "overlap", "comm_ms", "hidden_ms", "compute_ms", "waiting_ms", "reducing_ms", "placing_ms": STAT,
// "peers_known"}.
//
// A step takes as long as its slowest rank; the other times are means over the ranks. Statistics
// are over rounds, a ratio is taken inside a round, against those modes that were measured.
// "overlap" is the hidden part of all that was on the way in all rounds; null without DDP, as are
// the parts of the backward.
nlohmann::json ddp_rows(const std::vector<nlohmann::json>& ranks);

}  // namespace brigade::lab::bench
