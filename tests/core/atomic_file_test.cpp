#include <brigade/core/atomic_file.h>

#include <core/error_of.h>
#include <core/temporary_folder.h>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

using namespace brigade;
using test::error_of;
using test::read_bytes;
using test::TemporaryFolder;
using test::write_bytes;

namespace {

void save(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace

TEST_CASE("an atomic file takes its name when it is complete, and keeps the old file until then") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  {
    AtomicFile file(path);
    file.write("new", 3);
    CHECK_FALSE(std::filesystem::exists(path));
    CHECK(std::filesystem::exists(path + ".partial"));
    file.commit();
    CHECK(read_bytes(path) == "new");
  }
  {
    AtomicFile file(path);
    file.write("never", 5);
    CHECK(read_bytes(path) == "new");
  }
  CHECK(read_bytes(path) == "new");
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST_CASE("an atomic file writes over what a killed process left") {
  const TemporaryFolder folder;
  write_bytes(folder / "f.partial", "longer than what follows");
  save(folder / "f", "short");
  CHECK(read_bytes(folder / "f") == "short");
  CHECK_FALSE(std::filesystem::exists(folder / "f.partial"));
}

TEST_CASE("two writers of one file do not mix") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  AtomicFile first(path);
  first.write("1", 1);
  CHECK_THROWS_AS(AtomicFile{path}, IoError);
  CHECK(error_of([&] { AtomicFile file(path); }) ==
        "cannot write " + path + ": " + path + ".partial is being written by another process or thread");
  first.commit();
  CHECK(read_bytes(path) == "1");
  save(path, "2");
  CHECK(read_bytes(path) == "2");
}

TEST_CASE("an atomic file keeps the permissions of the old one and follows a link") {
  const TemporaryFolder folder;
  write_bytes(folder / "f", "old");
  ::chmod((folder / "f").c_str(), 0640);
  std::filesystem::create_symlink(folder / "f", folder / "link");
  save(folder / "link", "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_bytes(folder / "f") == "new");
  struct stat status {};
  ::stat((folder / "f").c_str(), &status);
  CHECK((status.st_mode & 0777) == 0640);
}

TEST_CASE("a folder that is not there, and a target that cannot be replaced, are named") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { AtomicFile file(folder / "none/f"); }) ==
        "cannot write " + folder / "none/f" + ": cannot create " + folder / "none/f.partial" +
            " after 0 bytes: No such file or directory; the old file, if there was one, is untouched");
  std::filesystem::create_directories(folder / "taken/inside");
  CHECK(error_of([&] { save(folder / "taken", "text"); }) ==
        "cannot write " + folder / "taken" + ": cannot rename " + folder / "taken.partial" +
            " after 4 bytes: Is a directory; the old file, if there was one, is untouched");
  CHECK(std::filesystem::is_directory(folder / "taken/inside"));
  CHECK_FALSE(std::filesystem::exists(folder / "taken.partial"));
}

TEST_CASE("when the disk takes no more, the error says how far it came, and the old file stands") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  save(path, "old");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // A limit on the size of files stands for a full disk; it holds for this process alone.
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    const bool limited = ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
    const std::string expected =
        "cannot write " + path + ": cannot write " + path +
        ".partial after 100 bytes: File too large; the old file, if there was one, is untouched";
    ::_exit(limited && error_of([&] { save(path, std::string(1000, 'x')); }) == expected ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(read_bytes(path) == "old");
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
}
