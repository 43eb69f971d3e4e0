// Looks at each of the three, and opens something harmless where one is closed.
#include <brigade/core/detail/standard_descriptors.h>

#include <fcntl.h>
#include <unistd.h>

namespace brigade::detail {

void fill_standard_descriptors() noexcept {
  for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; ++standard) {
    if (fcntl(standard, F_GETFD) >= 0) continue;
    // A folder cannot be written to, also not by way of /dev/stdout, as /dev/null could.
    const int opened = open(standard == STDIN_FILENO ? "/dev/null" : "/", O_RDONLY | O_NOCTTY);
    // The system gives the lowest free number, which another thread may have taken meanwhile.
    if (opened > STDERR_FILENO) close(opened);
  }
}

}  // namespace brigade::detail
