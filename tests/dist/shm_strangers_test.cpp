// Places of shared memory that a stranger wrote into the store: nothing but a rank's memory is mapped.
#include <brigade/core/error.h>
#include <brigade/dist/groups/shm/arena.h>

#include <doctest/doctest.h>

#include <csignal>
#include <cstdio>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace brigade;

namespace {

constexpr size_t kBytes = 4096;

std::string refusal(int pid, int fd) {
  try {
    const dist::shm::Mapping mapping(pid, fd, kBytes);
  } catch (const DistError& error) {
    return error.what();
  }
  return "mapped";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("shm: a rank's own kind of memory is mapped and shared") {
  const dist::shm::Mapping made(kBytes);
  const dist::shm::Mapping peer(getpid(), made.fd(), kBytes);
  static_cast<char*>(made.data())[7] = 'x';
  CHECK(static_cast<const char*>(peer.data())[7] == 'x');
  CHECK(ftruncate(made.fd(), 0) != 0);  // a peer's access would be a SIGBUS
}

TEST_CASE("shm: a file of the job's owner is not mapped") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file);
  REQUIRE(ftruncate(fileno(file), kBytes) == 0);
  const std::string text = refusal(getpid(), fileno(file));
  CHECK_MESSAGE(has(text, "not sealed"), text);
  std::fclose(file);
}

TEST_CASE("shm: memory of another size, a device and unsealed memory are not mapped") {
  const dist::shm::Mapping larger(2 * kBytes);
  CHECK(has(refusal(getpid(), larger.fd()), "expected 4096 bytes, it has 8192"));
  const int device = open("/dev/zero", O_RDWR | O_CLOEXEC);
  CHECK(has(refusal(getpid(), device), "not shared memory"));
  close(device);
  const int unsealed = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(ftruncate(unsealed, kBytes) == 0);
  CHECK(has(refusal(getpid(), unsealed), "not sealed"));
  close(unsealed);
}

TEST_CASE("shm: another user's memory is not mapped") {
  if (geteuid() != 0) {
    MESSAGE("SKIPPED: only root can start a process of a second user");
    return;
  }
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t other = fork();
  if (other == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
    const dist::shm::Mapping theirs(kBytes);
    const int fd = theirs.fd();
    if (write(ends[1], &fd, sizeof fd) != sizeof fd) _exit(1);
    alarm(20);
    pause();
    _exit(0);
  }
  close(ends[1]);
  int fd = -1;
  const bool came = read(ends[0], &fd, sizeof fd) == sizeof fd;
  const std::string text = came ? refusal(other, fd) : "";
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  close(ends[0]);
  if (!came) {
    MESSAGE("SKIPPED: this root may not become another user");
    return;
  }
  CHECK_MESSAGE(has(text, "it belongs to user 65534"), text);
}
