// The error for an operation without a kernel on a device.
#include <brigade/kernels/kernel.h>

namespace brigade::detail {

void throw_no_kernel(const char* name, DeviceType device) {
  throw DeviceError("'{}' has no kernel for {}; this build of Brigade does not support it there", name,
                    brigade::name(device));
}

}  // namespace brigade::detail
