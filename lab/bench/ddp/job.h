// What each rank does in `brigade bench ddp`: every mode of a model on every backend, in turns.
#pragma once

namespace brigade::lab::bench {

// A rank job. Arguments: {"backends", "models": [names], "modes": [names], "limits", "link": "" or
// as parse_link takes it, "pin", "device": as choose_device takes it}. Result: a list with a row for each model, backend and mode:
// {"model", "backend", "mode", "bytes", "tensors", "buckets", "peers_known", "rounds", "noise"}, and
// lists of this rank's milliseconds with an entry for each round: "step_ms" and the parts of the
// backward, "compute_ms", "waiting_ms", "reducing_ms", "placing_ms", "on_the_way_ms", "hidden_ms".
inline constexpr const char* kDdpJob = "bench-ddp";

}  // namespace brigade::lab::bench
