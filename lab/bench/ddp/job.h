// What each rank does in `brigade bench ddp`: every mode of a model, in turns.
#pragma once

namespace brigade::lab::bench {

// A rank job. Arguments: {"models": [names], "modes": [names], "rounds", "warm_up", "link": "" or as
// parse_link takes it, "pin"}. Result: a list with an entry for each model and mode, {"model", "mode", "bytes",
// "tensors", "buckets", "rounds": [{"step_ms", "compute_ms", "waiting_ms", "reducing_ms",
// "placing_ms", "on_the_way_ms", "hidden_ms", "peers_known"}]}: this rank's, one for each round.
inline constexpr const char* kDdpJob = "bench-ddp";

}  // namespace brigade::lab::bench
