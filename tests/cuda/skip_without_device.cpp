// Ends the program with status 77 (skipped, for CTest) if there is no GPU.
#include <brigade/core/cuda/device.h>

#include <cstdio>

namespace {

const bool checked = [] {
  if (brigade::cuda::device_count() > 0) return true;
  std::printf("skipped: %s\n", brigade::cuda::why_not_available().c_str());
  std::fflush(stdout);
  std::_Exit(77);
}();

}  // namespace
