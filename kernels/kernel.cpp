// The error of an operation that has no kernel on a device.
#include <brigade/kernels/kernel.h>

namespace brigade::detail {

void throw_no_kernel(const char* name, DeviceType device) {
  throw DeviceError(std::string("'") + name + "' has no kernel for " + brigade::name(device) +
                    "; this build of Brigade does not support it there");
}

}  // namespace brigade::detail
