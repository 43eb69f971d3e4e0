// The partial file is new, has an unpredictable name, and is locked while it is written: an
// unlocked partial file was left by a killed process. A symbolic link is followed to its target.
#include <brigade/core/atomic_file.h>

#include <brigade/core/detail/files.h>
#include <brigade/core/error.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace brigade {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 16;

bool same_file(int descriptor, const std::string& path) {
  struct stat by_descriptor {};
  struct stat by_path {};
  return ::fstat(descriptor, &by_descriptor) == 0 && ::lstat(path.c_str(), &by_path) == 0 &&
         by_descriptor.st_dev == by_path.st_dev && by_descriptor.st_ino == by_path.st_ino;
}

std::string followed(const std::string& path) {
  std::error_code failed;
  if (!fs::is_symlink(path, failed)) return path;
  const auto target = fs::canonical(path, failed);
  return failed ? path : target.string();  // a dangling link is replaced
}

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// Kept within the maximum length of a file name.
std::string partial_prefix(const std::string& target) {
  return fs::path(target).filename().string().substr(0, 200) + ".partial-";
}

std::string random_digits() {
  unsigned char bytes[kDigits / 2];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    throw IoError("cannot get random bytes: {}", std::strerror(errno));
  std::string digits;
  for (const unsigned char byte : bytes)
    for (const int half : {byte >> 4, byte & 15})
      digits += "0123456789abcdef"[half];
  return digits;
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

bool written_at_once(const std::string& path) {
  // "/dev/stdout" may be a link to a regular file, which is in use.
  if (path.starts_with("/dev/") || path.starts_with("/proc/")) return true;
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// A device, a pipe, or an open file.
class Channel {
 public:
  // Without O_NONBLOCK, opening a pipe would wait for a reader.
  explicit Channel(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
    if (descriptor_ < 0 && errno == ENXIO) throw IoError("cannot write {}: nobody reads it", path_);
    if (descriptor_ < 0) fail();
    ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) & ~O_NONBLOCK);
  }
  ~Channel() { ::close(descriptor_); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = ::write(descriptor_, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail();
      text.remove_prefix(static_cast<size_t>(count));
    }
  }

 private:
  [[noreturn]] void fail() const { throw IoError("cannot write {}: {}", path_, std::strerror(errno)); }
  const std::string& path_;
  int descriptor_;
};

bool locked(int descriptor) { return ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : AtomicFile(path, detail::Disk::system()) {}

AtomicFile::AtomicFile(const std::string& path, detail::Disk& disk)
    : disk_(disk), path_(path), target_(followed(path)) {
  struct stat old {};
  if (::stat(target_.c_str(), &old) == 0 && !S_ISREG(old.st_mode))
    throw IoError("cannot write {}: it is {}; expected a regular file, or a name that is free", path_,
                  kind_of(old.st_mode));
  remove_left_over();
  begin();
  take_permissions();
}

// Another writer that looks for left-over files may remove this one before it is locked.
void AtomicFile::begin() {
  detail::fill_standard_descriptors();
  while (true) {
    partial_ = (folder_of(target_) / (partial_prefix(target_) + random_digits())).string();
    descriptor_ = disk_.create(partial_);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) fail("create");
    if (!locked(descriptor_) && same_file(descriptor_, partial_)) return;
    ::close(descriptor_);
  }
}

void AtomicFile::take_permissions() {
  struct stat old {};
  if (::stat(target_.c_str(), &old) != 0 || ::fchmod(descriptor_, old.st_mode & 07777) == 0) return;
  const int reason = errno;
  disk_.remove(partial_);
  ::close(descriptor_);
  errno = reason;
  fail("prepare");
}

void AtomicFile::remove_left_over() const {
  const std::string prefix = partial_prefix(target_);
  std::error_code failed;
  for (const fs::directory_entry& each : fs::directory_iterator(folder_of(target_), failed)) {
    const std::string name = each.path().filename().string();
    if (name.size() != prefix.size() + kDigits || !name.starts_with(prefix)) continue;
    const int descriptor = ::open(each.path().c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    struct stat status {};
    if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
        ::flock(descriptor, LOCK_EX | LOCK_NB) == 0)
      ::unlink(each.path().c_str());
    ::close(descriptor);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  disk_.remove(partial_);
  ::close(descriptor_);
}

void AtomicFile::fail(const char* action) const {
  throw IoError(
      "cannot write {}: cannot {} the new file beside it, after {} bytes: {}; the old file, if there was one, is untouched",
      path_, action, written_, std::strerror(errno));
}

void AtomicFile::write(const void* data, size_t bytes) {
  constexpr size_t kMost = size_t{1} << 30;
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = disk_.write(descriptor_, from, std::min(bytes, kMost));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write");
    from += count;
    bytes -= static_cast<size_t>(count);
    written_ += static_cast<uint64_t>(count);
  }
}

void AtomicFile::commit() {
  if (disk_.sync(descriptor_) != 0) fail("sync");
  if (disk_.rename(partial_, target_) != 0) fail("rename");
  ::close(descriptor_);
  descriptor_ = -1;
  const std::string folder = folder_of(target_).string();
  if (disk_.sync_folder(folder) == 0) return;
  // Some file systems cannot sync a folder; there is nothing more to do then.
  if (errno == EINVAL || errno == EACCES) return;
  throw IoError("wrote {}, but cannot sync its folder {}: {}; after a power cut the old file may be back", path_,
                folder, std::strerror(errno));
}

void write_file(const std::string& path, std::string_view text) {
  detail::fill_standard_descriptors();
  if (written_at_once(path)) return Channel(path).write(text);
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

void check_writable(const std::string& path) {
  if (!written_at_once(path)) {
    const AtomicFile file(path);
  } else if (::access(path.c_str(), W_OK) != 0) {
    throw IoError("cannot write {}: {}", path, std::strerror(errno));
  }
}

}  // namespace brigade
