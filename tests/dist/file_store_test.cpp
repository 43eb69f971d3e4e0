// The file store belongs to its user alone: files that other users could have planted or changed are refused.
#include <brigade/dist/rendezvous/store.h>

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace brigade::test::file_store_test {
using namespace std::chrono_literals;
namespace fs = std::filesystem;

// A folder for the test, and a umask that masks no permission.
class Place {
 public:
  Place() : umask_(umask(0)) {
    std::string name = (fs::temp_directory_path() / "brigade-files-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~Place() {
    umask(umask_);
    fs::remove_all(folder_);
  }
  std::string store() const { return (folder_ / "store").string(); }
  std::string other() const { return (folder_ / "other").string(); }

 private:
  mode_t umask_;
  fs::path folder_;
};

unsigned mode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(lstat(path.c_str(), &status) == 0);
  return status.st_mode & 0777;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const DistError& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const std::string& directory) {
  return message_of([&] { dist::open_file_store(directory, 1); });
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("the directory of a file store and all files in it are for its user alone, whatever the umask") {
  const Place place;
  const auto store = dist::open_file_store(place.store() + "/", 1);
  store->set("key", "value");
  CHECK(store->add("count", 2) == 2);
  CHECK(mode_of(place.store()) == 0700);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(place.store())) {
    CHECK(mode_of(entry.path()) == 0600);
    ++files;
  }
  CHECK(files == 4);  // two keys, the number of ranks and the lock
}

TEST_CASE("a directory that others may write to, a link and a file are refused, and stay as they are") {
  const Place place;
  for (const mode_t mode : {0770U, 0707U, 0777U, 0720U}) {
    REQUIRE(mkdir(place.store().c_str(), mode) == 0);
    CHECK(has(refusal(place.store()), "others may write to " + place.store() + ", and could take part in the job"));
    REQUIRE(rmdir(place.store().c_str()) == 0);
  }
  REQUIRE(mkdir(place.other().c_str(), 0700) == 0);
  fs::create_symlink(place.other(), place.store());
  CHECK(has(refusal(place.store()), place.store() + " is a link, no directory, or cannot be read"));
  CHECK(has(refusal(place.store() + "/"), place.store() + " is a link, no directory, or cannot be read"));
  CHECK(fs::is_empty(place.other()));
  fs::remove(place.store());
  close(open(place.store().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  CHECK(has(refusal(place.store()), place.store() + " is a link, no directory, or cannot be read"));
}

TEST_CASE("a key that is a link is not followed") {
  const Place place;
  const auto store = dist::open_file_store(place.store(), 1);
  close(open(place.other().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  fs::create_symlink(place.other(), place.store() + "/key-a");
  CHECK(has(message_of([&] { store->get("a", 50ms); }), "cannot open " + place.store() + "/key-a"));
  store->set("a", "mine");
  CHECK(store->get("a", 50ms) == "mine");
  CHECK(fs::file_size(place.other()) == 0);
}

TEST_CASE("a directory and a file of another user are refused") {
  if (geteuid() != 0) {
    MESSAGE("SKIPPED: only root can make a file of a second user");
    return;
  }
  const Place place;
  REQUIRE(mkdir(place.store().c_str(), 0755) == 0);
  REQUIRE(chown(place.store().c_str(), 12345, 12345) == 0);
  CHECK(has(refusal(place.store()), place.store() + " belongs to user 12345, and this process to user 0"));
  REQUIRE(chown(place.store().c_str(), 0, 0) == 0);
  const auto store = dist::open_file_store(place.store(), 1);
  store->set("a", "1");
  const std::string key = place.store() + "/key-a";
  REQUIRE(chown(key.c_str(), 12345, 12345) == 0);
  CHECK(has(message_of([&] { store->get("a", 50ms); }), key + " belongs to user 12345, and this process to user 0"));
  CHECK(has(message_of([&] { store->add("a", 1); }), key + " belongs to user 12345"));
}

TEST_CASE("file store: a lock that somebody holds on to is a time-out that names the process") {
  const Place place;
  const auto store = dist::open_file_store(place.store(), 2, 100ms);
  CHECK(store->add("sum", 2) == 2);
  const int held = open((place.store() + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(flock(held, LOCK_EX) == 0);
  std::string text;
  try {
    store->add("sum", 3);
  } catch (const TimeoutError& error) {
    text = error.what();
  }
  CHECK(text == "file store: " + place.store() + "/lock has been locked by process " + std::to_string(getpid()) +
                    " for 100 ms; end that process, or take another file://");
  close(held);
  CHECK(store->add("sum", 3) == 5);
}

TEST_CASE("ranks that expect another number of ranks are informed, and the first ones go on") {
  const Place place;
  const auto first = dist::open_file_store(place.store(), 2);
  const std::string refused = message_of([&] { dist::open_file_store(place.store(), 3); });
  CHECK(refused.find("has 2 ranks, and this process expects 3: WORLD_SIZE differs") != std::string::npos);
  const auto second = dist::open_file_store(place.store(), 2);
  first->set("a", "b");
  CHECK(second->get("a", 1s) == "b");
}

}  // namespace brigade::test::file_store_test
