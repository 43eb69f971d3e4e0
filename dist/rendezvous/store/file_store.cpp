// A store in a directory: one file per key, replaced atomically; add() takes a lock. Any process that can write there
// counts as a rank, so directory and files belong to this user only.
#include <brigade/dist/rendezvous/store.h>
#include <brigade/dist/rendezvous/store/server.h>

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace brigade::dist {
namespace {

namespace fs = std::filesystem;

// Owns a descriptor, or -1.
class OpenFile {
 public:
  explicit OpenFile(int opened) : fd(opened) {}
  ~OpenFile() { close_now(); }
  OpenFile(OpenFile&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  OpenFile& operator=(const OpenFile&) = delete;
  // False when the written data was not stored.
  bool close_now() { return fd < 0 || close(std::exchange(fd, -1)) == 0; }

  int fd;
};

void check_owner(const struct stat& status, const fs::path& path) {
  if (status.st_uid != geteuid())
    throw DistError("file store: {} belongs to user {}, and this process to user {}; name a place that is only yours",
                    path.string(), status.st_uid, geteuid());
}

// Makes the directory, for this user only, or checks that an existing one is.
void make_own_directory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const bool made = mkdir(path.c_str(), 0700) == 0;
  if (!made && errno != EEXIST)
    throw DistError("file store: cannot make the directory {}: {}", path.string(), std::strerror(errno));
  // A link could lead to another folder of the user, which would be removed in the end.
  const OpenFile directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (directory.fd < 0 || fstat(directory.fd, &status) != 0)
    throw DistError("file store: {} is a link, no directory, or cannot be read: {}", path.string(),
                    std::strerror(errno));
  check_owner(status, path);
  if ((status.st_mode & 022) != 0)
    throw DistError("file store: others may write to {}, and could take part in the job; set it with: chmod go-w",
                    path.string());
}

// Returns -1 when the file does not exist. Throws DistError for a file of another user.
int open_own(const fs::path& path, int flags) {
  const int file = open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (file < 0 && errno != ENOENT)
    throw DistError("file store: cannot open {}: {}", path.string(), std::strerror(errno));
  struct stat status {};
  if (file >= 0 && fstat(file, &status) == 0 && status.st_uid != geteuid()) {
    close(file);
    check_owner(status, path);
  }
  return file;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t went = write(fd, text.data(), text.size());
    if (went < 0) return false;
    text.remove_prefix(static_cast<size_t>(went));
  }
  return true;
}

// A name that ends in a slash would follow a link.
std::string without_slash(std::string directory) {
  while (directory.size() > 1 && directory.ends_with('/'))
    directory.pop_back();
  return directory;
}

// Text that names the process that holds a lock on this file; "" when the kernel does not reveal it.
std::string holder_of(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return "";
  // "1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF"; a waiting process has "->" after the number.
  const std::string place = fmt::format("{:02x}:{:02x}:{}", major(status.st_dev), minor(status.st_dev), status.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, process, file;
    words >> number >> kind >> mode >> access >> process >> file;
    if (kind == "FLOCK" && file == place) return fmt::format(" by process {}", process);
  }
  return "";
}

// A lock is only held briefly, unless its holder was stopped.
void take_lock(int fd, const std::string& name, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      throw DistError("file store: cannot lock {}: {}", name, std::strerror(errno));
    if (std::chrono::steady_clock::now() >= deadline) {
      throw TimeoutError("file store: {} has been locked{} for {} ms; end that process, or take another file://", name,
                         holder_of(fd), timeout.count());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

class FileStore final : public Store {
 public:
  FileStore(const std::string& directory, int world_size, std::chrono::milliseconds lock_timeout)
      : directory_(without_slash(directory)), world_size_(world_size), lock_timeout_(lock_timeout) {
    make_own_directory(directory_);
    if (world_size_ > 0) agree_on_world_size();
  }
  ~FileStore() override {
    std::error_code ignored;
    try {
      if (add("left", 1) == world_size_) fs::remove_all(directory_, ignored);
    } catch (const Error&) {
      // The directory is gone already.
    }
  }

  void set(const std::string& key, const std::string& value) override {
    // Writes a temporary file and renames it, so that a reader sees all or nothing.
    const fs::path target = file(key);
    const fs::path temporary = fmt::format("{}.{}.part", target.string(), getpid());
    OpenFile out(open_own(temporary, O_WRONLY | O_CREAT | O_TRUNC));
    if (out.fd < 0 || !write_all(out.fd, value) || !out.close_now() || rename(temporary.c_str(), target.c_str()) != 0)
      throw DistError("file store: cannot write {}: {}", target.string(), std::strerror(errno));
  }

  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    std::string value;
    while (!read(key, value)) {
      if (std::chrono::steady_clock::now() >= deadline) {
        throw TimeoutError("the key '{}' did not appear in {} within {} ms", key, directory_.string(), timeout.count());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return value;
  }

  int64_t add(const std::string& key, int64_t amount) override {
    const OpenFile lock = locked();
    std::string value;
    const int64_t sum = added_to(key, read(key, value) ? &value : nullptr, amount);
    set(key, std::to_string(sum));
    return sum;
  }

  bool check(const std::string& key) override { return fs::exists(file(key)); }

 private:
  // Takes the lock until the returned file is closed.
  OpenFile locked() const {
    const fs::path name = directory_ / "lock";
    OpenFile lock(open_own(name, O_RDWR | O_CREAT));
    if (lock.fd < 0) throw DistError("file store: cannot open {}: {}", name.string(), std::strerror(errno));
    take_lock(lock.fd, name.string(), lock_timeout_);
    return lock;
  }
  // The first rank stores the world size; the others compare.
  void agree_on_world_size() {
    const OpenFile lock = locked();
    const std::string own = std::to_string(world_size_);
    std::string first;
    if (!read("world_size", first)) return set("world_size", own);
    if (first != own)
      throw DistError(
          "file store: the job in {} has {} ranks, and this process expects {}: WORLD_SIZE differs between the ranks, "
          "or another job uses that place or has left it; give each job a file:// of its own, and all its ranks the "
          "same WORLD_SIZE",
          directory_.string(), first, own);
  }
  // Keys may hold any character; file names may not.
  fs::path file(const std::string& key) const {
    std::string name = "key-";
    for (const unsigned char c : key)
      name += std::isalnum(c) ? std::string(1, static_cast<char>(c)) : fmt::format("_{:02x}", c);
    return directory_ / name;
  }
  bool read(const std::string& key, std::string& value) const {
    const OpenFile in(open_own(file(key), O_RDONLY));
    if (in.fd < 0) return false;
    value.clear();
    char bytes[4096];
    ssize_t got = 0;
    while ((got = ::read(in.fd, bytes, sizeof bytes)) > 0)
      value.append(bytes, static_cast<size_t>(got));
    if (got < 0) throw DistError("file store: cannot read {}: {}", file(key).string(), std::strerror(errno));
    return true;
  }

  fs::path directory_;
  int world_size_;
  std::chrono::milliseconds lock_timeout_;
};

}  // namespace

std::shared_ptr<Store> open_file_store(const std::string& directory, int world_size,
                                       std::chrono::milliseconds lock_timeout) {
  return std::make_shared<FileStore>(directory, world_size, lock_timeout);
}

}  // namespace brigade::dist
