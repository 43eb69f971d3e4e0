// The descriptors 0 to 2, which a program may have been started without.
#pragma once

namespace brigade::detail {

// After `program >&-`, and under some daemons and schedulers, standard input, output or error is closed. The next file,
// socket or piece of shared memory that the program opens would get its number, and the program's output would go into
// that. This fills each closed descriptor: reading returns end of file, and writing still fails (EBADF), so that lost
// output is not mistaken for written output. Opens nothing if all three are open; never fails.
//
// `brigade` calls it first of all; init_process_group, launch_processes and everything that writes
// files call it before they open anything.
void fill_standard_descriptors() noexcept;

}  // namespace brigade::detail
