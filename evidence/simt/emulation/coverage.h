// Records which kernels ran: SIMT_COVERAGE in the README.
#pragma once

namespace simt::detail {

// Records that a grid of `kernel` starts.
void note_run(const void* kernel);

}  // namespace simt::detail
