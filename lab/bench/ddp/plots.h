// The plots of `brigade bench ddp`: the step and the overlap over the bucket cap, and the step over the number of
// ranks.
#pragma once

#include <brigade/lab/bench/plot.h>

#include <nlohmann/json_fwd.hpp>

namespace brigade::lab::bench {

// `rows`: the rows of the report. With cap modes: the step over the cap, one line per model, relative to the step
// without DDP if the mode local was measured, otherwise in ms. Without cap modes: the step in ms over the number of
// ranks, one line per model and mode.
Plot step_plot(const nlohmann::json& rows);
// The hidden share, in percent, over the cap.
Plot overlap_plot(const nlohmann::json& rows);

}  // namespace brigade::lab::bench
