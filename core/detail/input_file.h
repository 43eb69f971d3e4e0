// A regular file, open for reading: its size, parts of it, or all of it as memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace brigade::detail {

class InputFile {
 public:
  // Throws IoError when there is no such file or it is not a regular one (a folder, a pipe).
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  // The size when the file was opened.
  uint64_t size() const noexcept { return size_; }
  // Exactly `bytes` bytes from `offset`. Throws IoError, also when the file has become shorter.
  void read(uint64_t offset, void* into, size_t bytes) const;
  // The whole file in memory; writes to that memory are private to the process and never reach the
  // file. It lives as long as the last copy of the pointer, and does not need this object. Throws
  // IoError.
  std::shared_ptr<char> map() const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace brigade::detail
