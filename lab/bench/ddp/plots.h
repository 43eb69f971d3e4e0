// Pictures of `brigade bench ddp`: the step and the overlap over the bucket cap, and the step over
// the ranks.
#pragma once

#include <brigade/lab/bench/plot.h>

#include <nlohmann/json_fwd.hpp>

namespace brigade::lab::bench {

// `rows`: the rows of the report. Over the cap (a line for each model, from its modes cap...): the
// step as a multiple of the step without DDP where the mode local is there, in ms otherwise. Without
// such modes: the step in ms over the number of ranks, a line for each model and mode.
Plot step_plot(const nlohmann::json& rows);
// The hidden share, in percent, over the cap.
Plot overlap_plot(const nlohmann::json& rows);

}  // namespace brigade::lab::bench
