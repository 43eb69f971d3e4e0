// The system calls for writing files.
#include <brigade/core/detail/disk.h>

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>

namespace brigade::detail {

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

}  // namespace brigade::detail
