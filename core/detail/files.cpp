// Files are read by pread or mapped by mmap, written by the calls of Disk; closed standard descriptors are filled.
#include <brigade/core/detail/files.h>

#include <brigade/core/error.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace brigade::detail {

// --- Files are read by pread or mapped by mmap; a failure is an IoError with the system's reason.

InputFile::InputFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw IoError("cannot open {}: {}", path, std::strerror(errno));
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    const std::string reason = known ? "it is not a regular file" : std::strerror(errno);
    ::close(descriptor_);
    throw IoError("cannot read {}: {}", path, reason);
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(uint64_t offset, void* into, size_t bytes) const {
  constexpr size_t kMost = size_t{1} << 30;
  auto* to = static_cast<char*>(into);
  for (size_t done = 0; done < bytes;) {
    const ssize_t count =
        ::pread(descriptor_, to + done, std::min(bytes - done, kMost), static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw IoError("cannot read {}: {}", path_, std::strerror(errno));
    if (count == 0) {
      throw IoError("{}: the file ends at byte {}, expected {} bytes; it has become shorter while it was read", path_,
                    offset + done, offset + bytes);
    }
    done += static_cast<size_t>(count);
  }
}

std::shared_ptr<char> InputFile::map() const {
  const auto size = static_cast<size_t>(size_);
  if (size == 0) return nullptr;
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor_, 0);
  if (memory == MAP_FAILED) {
    throw IoError("cannot map {} ({} bytes): {}", path_, size, std::strerror(errno));
  }
  return std::shared_ptr<char>(static_cast<char*>(memory), [size](char* mapped) { ::munmap(mapped, size); });
}

// --- The system calls for writing files.

int Disk::create(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}
ssize_t Disk::write(int descriptor, const void* data, size_t bytes) { return ::write(descriptor, data, bytes); }
int Disk::sync(int descriptor) { return ::fsync(descriptor); }
int Disk::rename(const std::string& from, const std::string& to) { return std::rename(from.c_str(), to.c_str()); }
int Disk::remove(const std::string& path) { return ::unlink(path.c_str()); }

int Disk::sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  const int status = ::fsync(descriptor);
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  return status;
}

Disk& Disk::system() {
  static Disk disk;
  return disk;
}

// --- Checks each of the three descriptors, and opens something harmless for one that is closed.

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
