// The timelines of all ranks as one trace, in the JSON that chrome://tracing and
// https://ui.perfetto.dev read.
//
// One process per rank: a lane for computation, one for the moments at which gradients became ready, and for each
// bucket its collectives (with bytes and bus bandwidth), as asynchronous events because they overlap. A section
// "brigade", which viewers ignore, holds names, bucket layout and ready order, so that `brigade explain FILE` can
// describe the trace. Format: docs/trace.md.
#pragma once

#include <brigade/dist/ddp/distributed_data_parallel.h>

#include <string>

namespace brigade::dist {

// Covers the rounds that the wrappers' timelines have kept (Timeline::keep). Collective; same text on every rank.
// Clocks of ranks on other hosts than rank 0's are shifted by the median difference of the moments at which
// collectives ended.
std::string trace_json(const DistributedDataParallelBase& ddp, SourceLocation where = SourceLocation::current());

}  // namespace brigade::dist
