// The rank job of `brigade bench ddp`: every mode of a model on every backend, in turns.
#pragma once

namespace brigade::lab::bench {

// A rank job. Arguments: {"backends", "models": [names], "modes": [names], "limits", "link": "" or text for
// parse_link, "pin", "device": text for choose_device}. Result: a list with a row for each model, backend and mode:
// {"model", "backend", "mode", "bytes", "tensors", "buckets", "peers_known", "rounds", "noise"}, and lists of this
// rank's milliseconds with an entry for each round: "step_ms" and the parts of the backward, "compute_ms",
// "waiting_ms", "reducing_ms", "placing_ms", "on_the_way_ms", "hidden_ms".
inline constexpr const char* kDdpJob = "bench-ddp";

}  // namespace brigade::lab::bench
