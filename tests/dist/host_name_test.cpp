// Resolving host names: found, unknown, and not answered in time.
#include <brigade/core/error.h>
#include <brigade/dist/rendezvous/store/socket.h>

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include <netinet/in.h>

namespace brigade::test::host_name_test {
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

int never_answers(const char*, const char*, const addrinfo*, addrinfo**) {
  std::this_thread::sleep_for(40s);  // on a thread that no caller waits for
  return EAI_AGAIN;
}
int does_not_know(const char*, const char*, const addrinfo*, addrinfo**) { return EAI_NONAME; }

template <class E>
std::string error_of(dist::Resolver resolver) {
  try {
    dist::resolve("rank-zero.example", 1234, false, Clock::now() + 100ms, resolver);
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a name server that does not answer is a time-out that names the host") {
  const auto begin = Clock::now();
  const std::string text = error_of<TimeoutError>(&never_answers);
  CHECK(text.find("where host 'rank-zero.example' is; check the name (MASTER_ADDR)") != std::string::npos);
  CHECK(Clock::now() - begin < 30s);  // does not wait for the answer
}

TEST_CASE("an unknown host is named at once") {
  CHECK(error_of<DistError>(&does_not_know).find("cannot resolve host 'rank-zero.example'") != std::string::npos);
}

TEST_CASE("an address in numbers needs no name server") {
  const dist::Addresses found = dist::resolve("127.0.0.1", 1234, false, Clock::now(), &never_answers);
  REQUIRE(found->ai_family == AF_INET);
  CHECK(reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_port == htons(1234));
}

TEST_CASE("a name is found") { CHECK(dist::resolve("localhost", 1234, false, Clock::now() + 60s)->ai_addr != nullptr); }

}  // namespace brigade::test::host_name_test
