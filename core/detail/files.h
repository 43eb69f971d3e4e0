// Files: one open for reading, the calls that write one, and the descriptors 0 to 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>

namespace brigade::detail {

// --- A regular file, open for reading: its size, parts of it, or all of it as memory.

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

// --- Disk: the calls that write a file, so that tests can make each of them fail, or drop data that was not synced.

class Disk {
 public:
  virtual ~Disk() = default;
  // Creates a new file for writing; never opens an existing one, and never follows a link. All
  // calls return -1 and set errno on failure.
  virtual int create(const std::string& path);
  virtual ssize_t write(int descriptor, const void* data, size_t bytes);
  virtual int sync(int descriptor);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int sync_folder(const std::string& folder);
  virtual int remove(const std::string& path);

  // The one that makes the system calls.
  static Disk& system();
};

// --- The descriptors 0 to 2, which a program may have been started without.

// After `program >&-`, and under some daemons and schedulers, standard input, output or error is closed. The next file,
// socket or piece of shared memory that the program opens would get its number, and the program's output would go into
// that. This fills each closed descriptor: reading returns end of file, and writing still fails (EBADF), so that lost
// output is not mistaken for written output. Opens nothing if all three are open; never fails.
//
// `brigade` calls it first of all; init_process_group, launch_processes and everything that writes
// files call it before they open anything.
void fill_standard_descriptors() noexcept;

}  // namespace brigade::detail
