// A store in a directory: one file per key, replaced atomically; sums under a lock.
#include <brigade/dist/meeting/store.h>
#include <brigade/dist/meeting/store/sum.h>

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace brigade::dist {

namespace {

namespace fs = std::filesystem;

class FileStore final : public Store {
 public:
  FileStore(const std::string& directory, int world_size) : directory_(directory), world_size_(world_size) {
    std::error_code error;
    fs::create_directories(directory_, error);
    if (!fs::is_directory(directory_))
      throw DistError("file store: cannot make the directory {}: {}", directory, error.message());
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
    // Written beside and renamed, so that a reader sees all or nothing.
    const fs::path target = file(key);
    const fs::path temporary = fmt::format("{}.{}.part", target.string(), getpid());
    std::ofstream out(temporary, std::ios::binary);
    out << value;
    out.close();
    std::error_code error;
    if (out) fs::rename(temporary, target, error);
    if (!out || error)
      throw DistError("file store: cannot write {}: {}", target.string(),
                      error ? error.message() : std::strerror(errno));
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
    const fs::path lock_file = directory_ / "lock";
    const int lock = open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) throw DistError("file store: cannot open {}: {}", lock_file.string(), std::strerror(errno));
    struct Unlock {
      int fd;
      ~Unlock() { close(fd); }
    } unlock{lock};
    if (flock(lock, LOCK_EX) != 0)
      throw DistError("file store: cannot lock {}: {}", lock_file.string(), std::strerror(errno));
    std::string value;
    const int64_t sum = added_to(key, read(key, value) ? &value : nullptr, amount);
    set(key, std::to_string(sum));
    return sum;
  }

  bool check(const std::string& key) override { return fs::exists(file(key)); }

 private:
  // Keys may hold any character; file names may not.
  fs::path file(const std::string& key) const {
    std::string name = "key-";
    for (const unsigned char c : key)
      name += std::isalnum(c) ? std::string(1, static_cast<char>(c)) : fmt::format("_{:02x}", c);
    return directory_ / name;
  }
  bool read(const std::string& key, std::string& value) const {
    std::ifstream in(file(key), std::ios::binary);
    if (!in) return false;
    std::ostringstream text;
    text << in.rdbuf();
    value = text.str();
    return true;
  }

  fs::path directory_;
  int world_size_;
};

}  // namespace

std::shared_ptr<Store> open_file_store(const std::string& directory, int world_size) {
  return std::make_shared<FileStore>(directory, world_size);
}

}  // namespace brigade::dist
