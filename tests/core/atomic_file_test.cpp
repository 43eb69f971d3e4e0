#include <brigade/core/atomic_file.h>

#include <core/error_of.h>
#include <core/simulated_disk.h>
#include <core/temporary_folder.h>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>

namespace brigade::test::atomic_file_test {
using test::after_power_cut;
using test::DiskCall;
using test::error_of;
using test::FailingDisk;
using test::kNoFile;
using test::read_bytes;
using test::RecordingDisk;
using test::TemporaryFolder;
using test::write_bytes;

namespace {

using Names = std::vector<std::string>;

void save(const std::string& path, const std::string& text, detail::Disk& disk = detail::Disk::system()) {
  AtomicFile file(path, disk);
  const size_t half = text.size() / 2;
  file.write(text.data(), half);
  file.write(text.data() + half, text.size() - half);
  file.commit();
}

}  // namespace

TEST_CASE("an atomic file takes its name when it is complete, and keeps the old file until then") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  {
    AtomicFile file(path);
    file.write("new", 3);
    REQUIRE(folder.names().size() == 1);
    CHECK(folder.names()[0].starts_with("f.partial-"));
    file.commit();
    CHECK(read_bytes(path) == "new");
  }
  {
    AtomicFile file(path);
    file.write("never", 5);
    CHECK(read_bytes(path) == "new");
  }
  CHECK(read_bytes(path) == "new");
  CHECK(folder.names() == Names{"f"});
}

TEST_CASE("an atomic file removes what killed processes left of it, and nothing else") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    AtomicFile file(path);
    file.write("torn", 4);
    ::raise(SIGKILL);
  }
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(folder.names().size() == 1);
  AtomicFile being_written(path);
  const Names others = {"f.partial-0123456789abcde", "f.partial-note", "ff.partial-0123456789abcdef"};
  for (const std::string& other : others)
    write_bytes(folder / other, "another's");
  std::filesystem::create_directory(folder / "f.partial-0123456789abcdef");
  save(path, "new");
  being_written.write("newer", 5);
  being_written.commit();
  CHECK(read_bytes(path) == "newer");
  CHECK(folder.names() == Names{"f", others[0], "f.partial-0123456789abcdef", others[1], others[2]});
}

TEST_CASE("two writers of one file do not mix: the one that commits last stands") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  AtomicFile first(path), second(path);
  first.write("1", 1);
  second.write("2", 1);
  first.write("1", 1);
  second.commit();
  CHECK(read_bytes(path) == "2");
  first.commit();
  CHECK(read_bytes(path) == "11");
  CHECK(folder.names() == Names{"f"});
}

TEST_CASE("links that somebody has planted are not followed to what they name") {
  const TemporaryFolder folder;
  write_bytes(folder / "precious", "old");
  // The name pattern of atomic files, and the fixed name without a suffix.
  for (const std::string name : {"f.partial", "f.partial-0123456789abcdef"})
    std::filesystem::create_symlink(folder / "precious", folder / name);
  save(folder / "f", "new");
  CHECK(read_bytes(folder / "precious") == "old");
  CHECK(read_bytes(folder / "f") == "new");
  const int descriptor = detail::Disk::system().create(folder / "f.partial");
  CHECK(descriptor == -1);
  CHECK(errno == EEXIST);
}

TEST_CASE("what is not a regular file is refused, and stays") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "folder/inside");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/null", folder / "link");
  const auto message = [&](const std::string& path, const std::string& what) {
    CHECK(error_of([&] { AtomicFile file(path); }) ==
          "cannot write " + path + ": it is " + what + "; expected a regular file, or a name that is free");
  };
  message(folder / "folder", "a folder");
  message(folder / "pipe", "a pipe");
  message(folder / "link", "a device");
  message("/dev/full", "a device");
  CHECK(folder.names() == Names{"folder", "link", "pipe"});
  CHECK(std::filesystem::is_directory(folder / "folder/inside"));
}

TEST_CASE("whichever call fails, the error names it, and the file is the old one or the new one") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  const std::string untouched = "; the old file, if there was one, is untouched";
  const std::vector<std::string> errors = {
      "cannot write " + path + ": cannot create the new file beside it, after 0 bytes: Input/output error" + untouched,
      "cannot write " + path + ": cannot write the new file beside it, after 1 bytes: Input/output error" + untouched,
      "cannot write " + path + ": cannot write the new file beside it, after 5 bytes: Input/output error" + untouched,
      "cannot write " + path + ": cannot sync the new file beside it, after 7 bytes: Input/output error" + untouched,
      "cannot write " + path + ": cannot rename the new file beside it, after 7 bytes: Input/output error" + untouched,
      "wrote " + path + ", but cannot sync its folder " + folder.text() +
          ": Input/output error; after a power cut the old file may be back"};
  for (int first = 0;; ++first) {
    CAPTURE(first);
    write_bytes(path, "old");
    FailingDisk disk(first, EIO);
    const std::string error = error_of([&] { save(path, "new new", disk); });
    CHECK(folder.names() == Names{"f"});
    if (!disk.has_failed()) {
      CHECK(error == "no error");
      CHECK(first == static_cast<int>(errors.size()));
      break;
    }
    CHECK(error == errors.at(static_cast<size_t>(first)));
    CHECK(read_bytes(path) == (first < 5 ? "old" : "new new"));
  }
}

TEST_CASE("whenever the power goes, the file is the old one or the new one, and the new one after commit()") {
  for (const std::string& old : {std::string("old"), kNoFile}) {
    const TemporaryFolder folder;
    const std::string path = folder / "f";
    RecordingDisk disk;
    save(path, "new new", disk);
    const std::vector<DiskCall>& calls = disk.calls();
    REQUIRE(calls.size() == 6);
    for (size_t n = 0; n <= calls.size(); ++n) {
      CAPTURE(n);
      const auto found = after_power_cut({calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(n)}, path, old);
      for (const std::string& content : found)
        CHECK((content == old || content == "new new"));
      CHECK(found.contains("new new") == (n >= 5));
      CHECK(found.contains(old) == (n < 6));
    }
    // Leaving out one of the calls breaks this guarantee.
    const auto without = [&](DiskCall::Kind kind) {
      std::vector<DiskCall> others;
      std::copy_if(calls.begin(), calls.end(), std::back_inserter(others),
                   [&](const DiskCall& call) { return call.kind != kind; });
      return after_power_cut(others, path, old);
    };
    CHECK(without(DiskCall::Sync).contains("new"));
    CHECK(without(DiskCall::Sync).contains(std::string("new") + std::string(4, '\0')));
    CHECK(without(DiskCall::SyncFolder).contains(old));
  }
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

TEST_CASE("a folder that is not there is named") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { AtomicFile file(folder / "none/f"); }) ==
        "cannot write " + folder / "none/f" +
            ": cannot create the new file beside it, after 0 bytes: No such file or "
            "directory; the old file, if there was one, is untouched");
}

TEST_CASE("when the disk takes no more, the error says how far it came, and the old file stands") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  save(path, "old");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // A limit on file sizes simulates a full disk; it applies to this process only.
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    const bool limited = ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
    const std::string expected =
        "cannot write " + path +
        ": cannot write the new file beside it, after 100 bytes: File too large; the old file, if there was one, is "
        "untouched";
    ::_exit(limited && error_of([&] { save(path, std::string(1000, 'x')); }) == expected ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(read_bytes(path) == "old");
  CHECK(folder.names() == Names{"f"});
}

TEST_CASE("a text goes whole to a file, and at once to a device or a pipe that somebody reads") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  write_file(path, "one");
  write_file(path, "two");
  CHECK(read_bytes(path) == "two");
  check_writable(path);
  check_writable(folder / "free");
  write_file("/dev/null", "text");
  check_writable("/dev/full");
  CHECK(error_of([] { write_file("/dev/full", "text"); }) == "cannot write /dev/full: No space left on device");
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of([&] { write_file(pipe, "text"); }) == "cannot write " + pipe + ": nobody reads it");
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_file(pipe, "text");
  char got[8] = {};
  CHECK(::read(reader, got, sizeof got) == 4);
  CHECK(std::string(got) == "text");
  ::close(reader);
  CHECK(error_of([&] { check_writable(folder / "none/f"); }).starts_with("cannot write " + folder / "none/f"));
  CHECK(error_of([&] { check_writable(folder.text()); }) ==
        "cannot write " + folder.text() + ": it is a folder; expected a regular file, or a name that is free");
  CHECK(folder.names() == Names{"f", "pipe"});
}

TEST_CASE("what /dev/fd names is added to, and never replaced") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  write_bytes(path, "before ");
  const int descriptor = ::open(path.c_str(), O_WRONLY);
  REQUIRE(descriptor >= 0);
  const std::string name = "/dev/fd/" + std::to_string(descriptor);
  check_writable(name);
  write_file(name, "after");
  ::close(descriptor);
  CHECK(read_bytes(path) == "before after");
}

}  // namespace brigade::test::atomic_file_test
