// Shared memory between the ranks of a host in the presence of strangers: other users, wrong nonces, silence, surplus
// descriptors, files that are no rank's memory. Strangers are refused, and the ranks get what they get without them.
#include <brigade/core/error.h>
#include <brigade/dist/groups/shm/handover.h>
#include <brigade/dist/groups/shm/local_socket.h>
#include <brigade/dist/rendezvous/secret.h>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brigade::test::shm_strangers_test {
using namespace brigade::dist::shm;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using dist::Socket;

constexpr size_t kBytes = 4096;

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// The error that refuses `fd` as a rank's memory.
std::string refusal(int fd) {
  return error_of([fd] { const SharedFile taken(Socket(fcntl(fd, F_DUPFD_CLOEXEC, 0)), kBytes, "of rank 1"); });
}

int open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

// Runs `act` in a process of another user, and `meanwhile` here, until it has ended; false if there can be none.
bool as_another_user(const std::function<void(pid_t)>& meanwhile, const std::function<int()>& act) {
  if (geteuid() != 0) {
    MESSAGE("SKIPPED: only root can start a process of a second user");
    return false;
  }
  const pid_t other = fork();
  if (other == 0) {
    alarm(20);
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(77);
    int status = 1;
    try {
      status = act();
    } catch (...) {
    }
    _exit(status);
  }
  meanwhile(other);
  int status = 0;
  waitpid(other, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    MESSAGE("SKIPPED: this root may not become another user");
    return false;
  }
  CHECK(status == 0);
  return true;
}

// The words of the invitation in the store, and the first message of a rank (Hello in handover.cpp).
struct Invited {
  explicit Invited(const std::string& invitation) { std::istringstream(invitation) >> name >> hello >> answer; }
  std::string name, hello, answer;
};
struct Hello {
  std::array<char, dist::kTokenBytes> nonce{};
  int32_t rank = 0;
  uint64_t bytes = 0;
  Hello(const std::string& word, int number, uint64_t memory) : rank(number), bytes(memory) {
    std::copy(word.begin(), word.end(), nonce.begin());
  }
};

Socket visit(const std::string& name) { return connect_local(name, Clock::now() + 60s, "rank 0"); }
void say(const Socket& connection, const Hello& hello, const std::vector<int>& descriptors) {
  send_local(connection, &hello, sizeof hello, descriptors, Clock::now() + 60s, "rank 0");
}
// Whether the peer closes the connection without sending anything.
bool is_closed(const Socket& connection) {
  for (int tries = 0; tries < 500; ++tries) {
    char byte = 0;
    const ssize_t got = recv(connection.fd(), &byte, 1, MSG_DONTWAIT);
    if (got > 0) return false;
    if (got == 0 || errno == ECONNRESET) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

// All ranks of a group, each with a byte of its own at the beginning of its memory.
struct Group {
  explicit Group(int size) : memory(static_cast<size_t>(size)) {
    for (int r = 0; r < size; ++r) {
      memory[static_cast<size_t>(r)] = SharedFile(kBytes * static_cast<size_t>(r + 1));
      *static_cast<char*>(Mapping(memory[static_cast<size_t>(r)], 0, kBytes).data()) = static_cast<char>('a' + r);
    }
    *static_cast<char*>(Mapping(control, 0, kBytes).data()) = '!';
  }
  int size() const { return static_cast<int>(memory.size()); }
  HandedOver host_side(std::chrono::milliseconds timeout = 60000ms) {
    return host.exchange(control, memory[0], size(), timeout, {});
  }
  // What the rank sees of the memory of all: "!a.c" for rank 1.
  std::string rank_side(int rank, std::chrono::milliseconds timeout = 60000ms) {
    SharedFile shared;
    const HandedOver all = accept_invitation(host.invitation(), rank, size(), memory[static_cast<size_t>(rank)], shared,
                                             kBytes, timeout, {});
    return first_byte(shared) + seen(all);
  }
  static std::string first_byte(const SharedFile& file) {
    return {*static_cast<const char*>(Mapping(file, 0, kBytes).data())};
  }
  static std::string seen(const HandedOver& all) {
    std::string bytes;
    for (const SharedFile& each : all.memory)
      bytes += each.fd() < 0 ? "." : first_byte(each);
    return bytes;
  }

  std::vector<SharedFile> memory;
  SharedFile control{kBytes};
  MemoryHost host;
};

TEST_CASE("shm: a rank's own kind of memory is mapped and shared") {
  const SharedFile file(kBytes);
  const Mapping made(file, 0, kBytes);
  const SharedFile taken(Socket(fcntl(file.fd(), F_DUPFD_CLOEXEC, 0)), kBytes, "of rank 1");
  const Mapping peer(taken, 0, kBytes);
  static_cast<char*>(made.data())[7] = 'x';
  CHECK(static_cast<const char*>(peer.data())[7] == 'x');
  CHECK(ftruncate(file.fd(), 0) != 0);  // a peer's access would be a SIGBUS
  CHECK(has(error_of([&] { const Mapping outside(taken, kBytes, kBytes); }), "lie outside"));
}

TEST_CASE("shm: memory that a rank gives back is free, and reads as zeros") {
  const SharedFile file(uint64_t{1} << 47);
  struct stat entry {};
  const uint64_t far = uint64_t{1} << 46;
  const Mapping made(file, far, 16 * kBytes);
  REQUIRE(fstat(file.fd(), &entry) == 0);
  CHECK(entry.st_blocks * 512 == 16 * kBytes);
  static_cast<char*>(made.data())[0] = 'x';
  file.release(far, 16 * kBytes);
  REQUIRE(fstat(file.fd(), &entry) == 0);
  CHECK(entry.st_blocks == 0);
  CHECK(static_cast<const char*>(made.data())[0] == 0);
}

TEST_CASE("shm: files, devices, memory of another size and unsealed memory are not taken") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file);
  REQUIRE(ftruncate(fileno(file), kBytes) == 0);
  CHECK(has(refusal(fileno(file)), "cannot take the memory of rank 1: it is not sealed"));
  std::fclose(file);
  const SharedFile larger(2 * kBytes);
  CHECK(has(refusal(larger.fd()), "expected 4096 bytes, it has 8192"));
  const Socket device(open("/dev/zero", O_RDWR | O_CLOEXEC));
  CHECK(has(refusal(device.fd()), "not shared memory"));
  const Socket unsealed(memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(unsealed.fd(), kBytes) == 0);
  CHECK(has(refusal(unsealed.fd()), "not sealed"));
}

TEST_CASE("shm: another user's memory is not taken") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  const Socket ours(ends[0]);
  const Socket theirs(ends[1]);
  std::string text;
  const bool ran = as_another_user(
      [&](pid_t) {
        char word = 0;
        wait_local(ours, Clock::now() + 60s, "the other user", "");
        const LocalMessage message = receive_local(ours, &word, 1, 1);
        if (message.descriptors.size() == 1) text = refusal(message.descriptors[0].fd());
      },
      [&] {
        const SharedFile made(kBytes);
        send_local(theirs, "m", 1, {made.fd()}, Clock::now() + 60s, "us");
        return 0;
      });
  if (ran) CHECK_MESSAGE(has(text, "it belongs to user 65534, this process runs as user 0"), text);
}

TEST_CASE("shm: all ranks get the memory of all, and no descriptor is left over") {
  const int before = open_descriptors();
  {
    Group group(4);
    std::vector<std::future<std::string>> ranks;
    for (int r = 1; r < group.size(); ++r)
      ranks.push_back(std::async(std::launch::async, [&group, r] { return group.rank_side(r); }));
    const HandedOver all = group.host_side();
    CHECK(Group::seen(all) == ".bcd");
    CHECK(all.processes == std::vector<int>(4, getpid()));
    CHECK(ranks[0].get() == "!a.cd");
    CHECK(ranks[1].get() == "!ab.d");
    CHECK(ranks[2].get() == "!abc.");
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("shm: strangers of the same user at the door are refused, and the ranks come in") {
  const int before = open_descriptors();
  {
    Group group(3);
    const Invited known(group.host.invitation());
    const SharedFile memory(kBytes);
    const Socket unsealed(memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(ftruncate(unsealed.fd(), kBytes) == 0);

    std::vector<Socket> refused;
    const auto stranger = [&](const Hello& hello, const std::vector<int>& descriptors) {
      refused.push_back(visit(known.name));
      say(refused.back(), hello, descriptors);
    };
    std::vector<Socket> silent;
    for (int i = 0; i < 20; ++i)
      silent.push_back(visit(known.name));
    stranger(Hello(std::string(dist::kTokenBytes, '0'), 1, kBytes), {memory.fd()});  // a wrong nonce
    stranger(Hello(known.answer, 1, kBytes), {memory.fd()});                         // the other nonce
    stranger(Hello(known.hello, 1, kBytes), {});                                     // no memory
    stranger(Hello(known.hello, 1, kBytes), {memory.fd(), memory.fd()});             // surplus descriptors: they fit
    stranger(Hello(known.hello, 1, kBytes), std::vector(200, memory.fd()));          // and they do not
    stranger(Hello(known.hello, 0, kBytes), {memory.fd()});                          // the first rank itself
    stranger(Hello(known.hello, 3, kBytes), {memory.fd()});                          // no rank
    stranger(Hello(known.hello, -1, kBytes), {memory.fd()});
    stranger(Hello(known.hello, 1, kBytes), {unsealed.fd()});
    stranger(Hello(known.hello, 1, 2 * kBytes), {memory.fd()});  // of another size
    refused.push_back(visit(known.name));
    send_local(refused.back(), std::string(9000, 'x').data(), 9000, {memory.fd()}, Clock::now() + 60s, "rank 0");

    const auto begin = Clock::now();
    auto host = std::async(std::launch::async, [&] { return Group::seen(group.host_side()); });
    for (const Socket& each : refused)
      CHECK(is_closed(each));
    auto first = std::async(std::launch::async, [&] { return group.rank_side(1); });
    CHECK(group.rank_side(2) == "!ab.");
    CHECK(first.get() == "!a.c");
    CHECK(host.get() == ".bc");
    CHECK(Clock::now() - begin < 30s);  // half of the time-out: no rank waited for the silent ones
    for (const Socket& each : silent)
      CHECK(is_closed(each));
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("shm: a rank that has come keeps its place when another claims it") {
  Group group(3);
  const Invited known(group.host.invitation());
  const Socket rank = visit(known.name);
  say(rank, Hello(known.hello, 1, group.memory[1].bytes()), {group.memory[1].fd()});
  const Socket second = visit(known.name);
  say(second, Hello(known.hello, 1, kBytes), {group.control.fd()});
  auto host = std::async(std::launch::async, [&] { return Group::seen(group.host_side()); });
  CHECK(is_closed(second));
  auto last = std::async(std::launch::async, [&] { return group.rank_side(2); });
  std::array<char, 4096> answer{};
  wait_local(rank, Clock::now() + 60s, "rank 0", "");
  CHECK(receive_local(rank, answer.data(), answer.size(), 3).descriptors.size() == 3);
  send_local(rank, "k", 1, {}, Clock::now() + 60s, "rank 0");
  CHECK(last.get() == "!ab.");
  CHECK(host.get() == ".bc");
}

TEST_CASE("shm: another user who knows all that the store says gets nothing, and holds nobody up") {
  Group group(2);
  const Invited known(group.host.invitation());
  std::future<std::string> host;
  as_another_user(
      [&](pid_t) {
        // The rank comes when the stranger has been sent away.
        host = std::async(std::launch::async, [&] { return Group::seen(group.host_side()); });
      },
      [&] {
        // Only its user distinguishes it from the rank: the memory is the rank's own.
        const Socket connection = visit(known.name);
        try {
          say(connection, Hello(known.hello, 1, group.memory[1].bytes()), {group.memory[1].fd()});
        } catch (const PeerError&) {
          return 0;  // it was closed at once
        }
        return is_closed(connection) ? 0 : 1;
      });
  if (!host.valid()) return;
  CHECK(group.rank_side(1) == "!a.");
  CHECK(host.get() == ".b");
}

TEST_CASE("shm: a rank gives its memory to no other user") {
  // The other user's listener; no process of ours is to hold it.
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const Socket said(ends[0]);
  std::string text;
  const bool ran = as_another_user(
      [&](pid_t other) {
        close(ends[1]);
        char word = 0;
        if (read(said.fd(), &word, 1) != 1) return;
        const std::string name = "brigade-test-" + std::to_string(other);
        const SharedFile own(kBytes);
        SharedFile control;
        text = error_of([&] {
          accept_invitation(
              name + " " + std::string(dist::kTokenBytes, '1') + " " + std::string(dist::kTokenBytes, '2'), 1, 2, own,
              control, kBytes, 60000ms, {});
        });
      },
      [&] {
        const Socket listener = listen_local("brigade-test-" + std::to_string(getpid()));
        if (write(ends[1], "l", 1) != 1) return 1;
        wait_local(listener, Clock::now() + 60s, "a rank", "");
        const Socket rank = accept_local(listener);
        // The rank hangs up without sending anything.
        char word = 0;
        wait_local(rank, Clock::now() + 60s, "a rank", "");
        const LocalMessage message = receive_local(rank, &word, 1, 8);
        return message.bytes == 0 && message.descriptors.empty() ? 0 : 1;
      });
  if (ran) CHECK_MESSAGE(has(text, "rank 0 runs as user 65534, rank 1 as user 0"), text);
}

TEST_CASE("shm: whoever waits for a rank that does not come is reported in time, with who was refused") {
  Group group(3);
  const Invited known(group.host.invitation());
  const Socket stranger = visit(known.name);
  say(stranger, Hello(std::string(dist::kTokenBytes, '0'), 2, kBytes), {group.control.fd()});
  auto rank = std::async(std::launch::async, [&] { return error_of([&] { group.rank_side(1); }); });
  const auto begin = Clock::now();
  const std::string text = error_of([&] { group.host_side(1500ms); });
  CHECK(Clock::now() - begin < 30s);
  CHECK_MESSAGE(has(text, "rank 0 waited 1500 ms for the memory of rank 2 of 3, which did not join"), text);
  CHECK_MESSAGE(has(text, "was refused: it does not know the nonce of this group"), text);
  CHECK(has(rank.get(), "rank 0 gave no memory"));
}

TEST_CASE("shm: a first rank that is gone, silent or somebody else is an error in time") {
  const SharedFile own(kBytes);
  SharedFile control;
  const auto come = [&](const std::string& invitation) {
    return error_of([&] { accept_invitation(invitation, 1, 2, own, control, kBytes, 300ms, {}); });
  };
  const std::string gone = MemoryHost().invitation();
  CHECK(has(come(gone), "nobody hands over memory where rank 0 did"));
  const MemoryHost silent;
  CHECK(has(come(silent.invitation()), "timed out waiting for rank 0 to hand over"));
  CHECK(has(come("only two"), "expected a name and two nonces"));

  const Socket listener = listen_local("brigade-test-" + std::to_string(getpid()));
  auto impostor = std::async(std::launch::async, [&] {
    wait_local(listener, Clock::now() + 60s, "a rank", "");
    const Socket rank = accept_local(listener);
    const std::string words(9000, 'x');
    send_local(rank, words.data(), words.size(), {own.fd(), own.fd(), own.fd()}, Clock::now() + 60s, "a rank");
    return is_closed(rank);
  });
  const int before = open_descriptors();
  CHECK(has(come("brigade-test-" + std::to_string(getpid()) + " " + std::string(dist::kTokenBytes, '1') + " " +
                 std::string(dist::kTokenBytes, '2')),
            "who answered is not rank 0"));
  impostor.wait();
  CHECK(open_descriptors() <= before);
}

}  // namespace brigade::test::shm_strangers_test
