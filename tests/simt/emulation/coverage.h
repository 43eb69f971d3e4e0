// Which kernels ran: SIMT_COVERAGE of the README.
#pragma once

namespace simt::detail {

// A grid of `kernel` begins to run.
void note_run(const void* kernel);

}  // namespace simt::detail
