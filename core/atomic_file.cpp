// The partial file is locked while it is written, and a symbolic link is followed to its target.
#include <brigade/core/atomic_file.h>

#include <brigade/core/error.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace brigade {

namespace {

bool same_file(int descriptor, const std::string& path) {
  struct stat by_descriptor {};
  struct stat by_path {};
  return ::fstat(descriptor, &by_descriptor) == 0 && ::stat(path.c_str(), &by_path) == 0 &&
         by_descriptor.st_dev == by_path.st_dev && by_descriptor.st_ino == by_path.st_ino;
}

std::string followed(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_symlink(path, failed)) return path;
  const auto target = std::filesystem::canonical(path, failed);
  return failed ? path : target.string();  // a link to nothing is replaced
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(followed(path)), partial_(target_ + ".partial") {
  // The lock keeps two writers apart. A writer that waited in open() while the other one committed
  // holds a file that has another name by now: it opens anew.
  while (true) {
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail("cannot create");
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor_);
      throw IoError("cannot write {}: {} is being written by another process or thread", path_, partial_);
    }
    if (same_file(descriptor_, partial_)) break;
    ::close(descriptor_);
  }
  struct stat old {};
  const bool cleared = ::ftruncate(descriptor_, 0) == 0 &&
                       (::stat(target_.c_str(), &old) != 0 || ::fchmod(descriptor_, old.st_mode & 07777) == 0);
  if (cleared) return;
  const int reason = errno;
  ::unlink(partial_.c_str());
  ::close(descriptor_);
  errno = reason;
  fail("cannot prepare");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::unlink(partial_.c_str());  // while the lock is held: it is ours
  ::close(descriptor_);
}

void AtomicFile::fail(const char* action) const {
  throw IoError("cannot write {}: {} {} after {} bytes: {}; the old file, if there was one, is untouched", path_,
                action, partial_, written_, std::strerror(errno));
}

void AtomicFile::write(const void* data, size_t bytes) {
  constexpr size_t kMost = size_t{1} << 30;
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::write(descriptor_, from, std::min(bytes, kMost));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot write");
    from += count;
    bytes -= static_cast<size_t>(count);
    written_ += static_cast<uint64_t>(count);
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail("cannot sync");
  if (std::rename(partial_.c_str(), target_.c_str()) != 0) fail("cannot rename");
  ::close(descriptor_);
  descriptor_ = -1;
  const std::string folder = folder_of(target_);
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = directory >= 0 && ::fsync(directory) == 0;
  const int reason = errno;
  if (directory >= 0) ::close(directory);
  // Some file systems cannot sync a folder; there is nothing more to do then.
  if (!synced && reason != EINVAL && reason != EACCES) {
    throw IoError("wrote {}, but cannot sync its folder {}: {}; after a power cut the old file may be back", path_,
                  folder, std::strerror(reason));
  }
}

}  // namespace brigade
