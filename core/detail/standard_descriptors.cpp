// Checks each of the three descriptors, and opens something harmless for one that is closed.
#include <brigade/core/detail/standard_descriptors.h>

#include <fcntl.h>
#include <unistd.h>

namespace brigade::detail {

void fill_standard_descriptors() noexcept {
  for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; ++standard) {
    if (fcntl(standard, F_GETFD) >= 0) continue;
    // A folder cannot be written to, not even through /dev/stdout, unlike /dev/null.
    const int opened = open(standard == STDIN_FILENO ? "/dev/null" : "/", O_RDONLY | O_NOCTTY);
    // The system gives the lowest free number; another thread may just have taken the expected one.
    if (opened > STDERR_FILENO) close(opened);
  }
}

}  // namespace brigade::detail
