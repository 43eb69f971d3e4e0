// What every fuzz target shares: the bytes as a file, and the rule that bad bytes give an error of Brigade's that names
// the file, never another exception.
#pragma once

#include <brigade/core/error.h>

#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

namespace brigade::fuzz {

// A file in memory with a path, so that a reader handles it as any other file.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    for (size_t done = 0; done < size;) {
      const ssize_t count = ::write(descriptor_, data + done, size - done);
      if (count <= 0) std::abort();
      done += static_cast<size_t>(count);
    }
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }
  ~Input() { ::close(descriptor_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const std::string& path() const noexcept { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "does not hold: " << what << "\n";
  std::abort();
}

// Runs `read` on the bytes as a file.
int run(const uint8_t* data, size_t size, const auto& read) {
  const Input input(data, size);
  try {
    read(input.path());
  } catch (const Error& error) {
    require(std::strstr(error.what(), input.path().c_str()), "an error names the file");
  }
  return 0;
}

}  // namespace brigade::fuzz
