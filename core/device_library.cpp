// Finds and loads the library of a device's kernels, next to this one.
#include <brigade/core/device_runtime.h>

#include <brigade/core/error.h>

#include <mutex>

#ifdef BRIGADE_CUDA_LIBRARY
#include <dlfcn.h>

#include <cstdlib>
#endif

namespace brigade::detail {

#ifdef BRIGADE_CUDA_LIBRARY

namespace {

// $BRIGADE_CUDA_LIBRARY, or the file next to the library that contains this function.
std::string path_of_library() {
  if (const char* given = std::getenv("BRIGADE_CUDA_LIBRARY")) return given;
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&path_of_library), &info) == 0 || !info.dli_fname)
    return BRIGADE_CUDA_LIBRARY;
  const std::string own = info.dli_fname;
  return own.substr(0, own.rfind('/') + 1) + BRIGADE_CUDA_LIBRARY;
}

}  // namespace

bool load_device_library(DeviceType type) {
  if (type != DeviceType::CUDA) return false;
  static std::mutex mutex;
  static bool loaded = false;
  static std::string failure;
  const std::lock_guard lock(mutex);
  if (!loaded && failure.empty()) {
    const std::string path = path_of_library();
    // Kept for the life of the process: the tables point into it.
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
      loaded = true;
    } else {
      const char* why = dlerror();
      failure = why ? why : path;
    }
  }
  if (!failure.empty()) {
    throw DeviceError(
        "the CUDA library could not be loaded: {}; check that the CUDA toolkit, cuBLAS and cuDNN of the build are "
        "installed",
        failure);
  }
  return true;
}

#else

bool load_device_library(DeviceType) { return false; }

#endif

}  // namespace brigade::detail
