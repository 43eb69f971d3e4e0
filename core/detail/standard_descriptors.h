// The descriptors 0 to 2, which a program may have been started without.
#pragma once

namespace brigade::detail {

// After `program >&-`, and under some daemons and schedulers, standard input, output or error is
// closed. The next file, socket or piece of shared memory that the program opens would get its
// number, and what the program prints would go into that. This fills each that is closed: reading
// finds the end, and writing fails as before (EBADF), so that lost output does not pass for written.
// Opens nothing where all three are open; never fails.
//
// `brigade` calls it first of all; init_process_group, launch_processes and whatever writes files
// before they open anything.
void fill_standard_descriptors() noexcept;

}  // namespace brigade::detail
