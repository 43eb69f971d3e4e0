// Strangers connect to a live TCP store: whatever they do, the ranks of the job get their answers.
#include <brigade/core/error.h>
#include <brigade/core/warning.h>
#include <brigade/dist/rendezvous/store.h>
#include <brigade/dist/rendezvous/store/greeting.h>
#include <brigade/dist/rendezvous/store/socket.h>

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brigade::test::store_strangers_test {
using namespace std::chrono_literals;

namespace {

// Sanitizers reserve more address space than a test leaves, and open a pipe to check that an object's memory is
// readable: without a descriptor every object looks broken to them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

dist::Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

dist::Socket stranger(int port) { return dist::try_connect("127.0.0.1", port, in(60s)); }

// A stranger that has greeted as a client does.
dist::Socket guest(int port) {
  dist::Socket socket = stranger(port);
  dist::send_all(socket, dist::kStoreMagic.data(), dist::kStoreMagic.size(), in(60s));
  dist::send_string(socket, dist::greeting_text({}), in(60s));
  std::string magic(dist::kStoreMagic.size(), ' ');
  dist::receive_all(socket, magic.data(), magic.size(), in(60s));
  CHECK(dist::receive_string(socket, in(60s)) == "=");
  return socket;
}

bool closed_by_store(const dist::Socket& socket, std::chrono::milliseconds patience = 60s) {
  std::string bytes(64 << 10, ' ');
  try {
    while (true)
      dist::receive_all(socket, bytes.data(), bytes.size(), in(patience));
  } catch (const TimeoutError&) {
    return false;
  } catch (const PeerError&) {
    return true;
  }
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// A store in a process of its own, whose resources are limited before it starts.
class Elsewhere {
 public:
  Elsewhere(int resource, rlim_t limit, const dist::StoreLimits& limits) {
    int from[2], to[2];
    REQUIRE(pipe(from) == 0);
    REQUIRE(pipe(to) == 0);
    child_ = fork();
    if (child_ == 0) {
      close(to[1]);
      const rlimit bound{limit, limit};
      setrlimit(resource, &bound);
      dist::TcpStoreServer server("127.0.0.1", 0, {}, limits);
      const int port = server.port();
      char byte = 0;
      bool good = write(from[1], &port, sizeof port) == sizeof port;
      good = read(to[0], &byte, 1) == 0 && good;
      rusage used{};
      getrusage(RUSAGE_SELF, &used);
      const long ms =
          (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
      good = write(from[1], &ms, sizeof ms) == sizeof ms && good;
      _exit(good ? 0 : 1);
    }
    close(from[1]);
    close(to[0]);
    from_ = from[0];
    to_ = to[1];
    REQUIRE(read(from_, &port, sizeof port) == sizeof port);
  }
  ~Elsewhere() {
    kill(child_, SIGKILL);
    if (to_ >= 0) waitpid(child_, nullptr, 0);
  }
  // Ends the store normally. Returns the processor time that it used, in ms.
  long end() {
    close(to_);
    to_ = -1;
    long ms = -1;
    CHECK(read(from_, &ms, sizeof ms) == sizeof ms);
    close(from_);
    int status = -1;
    CHECK(waitpid(child_, &status, 0) == child_);
    CHECK(status == 0);
    return ms;
  }
  int port = 0;

 private:
  pid_t child_ = -1;
  int from_ = -1, to_ = -1;
};

}  // namespace

namespace {

// Guests that request more than their connection holds.
std::vector<dist::Socket> ask_and_do_not_read(const dist::TcpStoreServer& server) {
  dist::connect_tcp_store("127.0.0.1", server.port(), 60s)->set("large", std::string(16 << 20, 'x'));
  std::vector<dist::Socket> slow;
  for (int i = 0; i < 8; ++i) {
    slow.push_back(guest(server.port()));
    dist::send_string(slow.back(), "Glarge", in(60s));
  }
  return slow;
}

}  // namespace

TEST_CASE("clients that do not read their answers block nobody, and are closed in the end") {
  dist::TcpStoreServer patient("127.0.0.1", 0, {}, {.stall = std::chrono::hours(1)});
  const std::vector<dist::Socket> beside_it = ask_and_do_not_read(patient);
  const auto beside = dist::connect_tcp_store("127.0.0.1", patient.port(), 60s);
  for (int i = 1; i <= 50; ++i)
    CHECK(beside->add("count", 1) == i);
  dist::TcpStoreServer server("127.0.0.1", 0, {}, {.stall = 1s});
  const std::vector<dist::Socket> slow = ask_and_do_not_read(server);
  // A client that reads after that gets what was on its way, and the end of the connection instead of the rest.
  std::this_thread::sleep_for(2s);
  for (const dist::Socket& socket : slow)
    CHECK(closed_by_store(socket));
  CHECK(dist::connect_tcp_store("127.0.0.1", server.port(), 60s)->add("count", 1) == 1);
}

TEST_CASE("strangers who do not greet are closed, and more of them than may wait keep nobody out") {
  dist::TcpStoreServer server("127.0.0.1", 0, {}, {.strangers = 8, .greeting = 300ms});
  std::vector<dist::Socket> idle;
  for (int i = 0; i < 50; ++i)
    idle.push_back(stranger(server.port()));
  const auto store = dist::connect_tcp_store("127.0.0.1", server.port(), 60s);
  // A byte now and then is no greeting.
  dist::send_all(idle.back(), dist::kStoreMagic.data(), 1, in(60s));
  for (const dist::Socket& socket : idle)
    CHECK(closed_by_store(socket));
  CHECK(store->add("count", 1) == 1);
}

TEST_CASE("a store that is full says so, keeps what it has, and takes what fits") {
  dist::TcpStoreServer server("127.0.0.1", 0, {}, {.total_bytes = 1 << 20, .keys = 100, .connections = 2});
  const auto a = dist::connect_tcp_store("127.0.0.1", server.port(), 60s);
  const auto b = dist::connect_tcp_store("127.0.0.1", server.port(), 60s);
  CHECK(message_of([&] {
          dist::connect_tcp_store("127.0.0.1", server.port(), 60s);
        }).find("it has 2 connections, which is all that it may") != std::string::npos);
  a->set("half", std::string(600'000, 'x'));
  const std::string text = message_of([&] { a->set("other half", std::string(600'000, 'y')); });
  CHECK(text.find("it is full: 600000 bytes for 'other half' are more than is left of the 1048576") !=
        std::string::npos);
  CHECK_FALSE(a->check("other half"));
  // The room of a value is given back when it is replaced.
  for (int i = 0; i < 5; ++i)
    a->set("half", std::string(600'000 + static_cast<size_t>(i), 'z'));
  CHECK(b->get("half", 60s).size() == 600'004);
  for (int i = 0; i < 99; ++i)
    CHECK(b->add("key" + std::to_string(i), 1) == 1);
  CHECK(message_of([&] { b->add("one more", 1); }).find("it holds 100 keys, which is all") != std::string::npos);
  CHECK(b->add("key7", 1) == 2);
  // Requests that never end are bounded too: the one that passes the bound loses its connection.
  CHECK_THROWS_AS(b->set("unfinished", std::string(8 << 20, 'x')), PeerError);
  CHECK(a->get("key7", 60s) == "2");
}

TEST_CASE("a store without descriptors waits for some without working, and then goes on" * doctest::skip(kSanitized)) {
  Elsewhere store(RLIMIT_NOFILE, 32, {});
  std::vector<dist::Socket> guests;
  for (int i = 0; i < 20; ++i)
    guests.push_back(guest(store.port));
  std::vector<dist::Socket> waiting;
  for (int i = 0; i < 40; ++i)
    waiting.push_back(stranger(store.port));
  std::this_thread::sleep_for(1s);
  waiting.clear();
  guests.resize(5);
  const auto rank = dist::connect_tcp_store("127.0.0.1", store.port, 60s);
  CHECK(rank->add("count", 1) == 1);
  CHECK(store.end() < 400);
}

TEST_CASE("a hundred values of 8 MB into a store without that memory end no more than their connection" *
          doctest::skip(kSanitized)) {
  // Its quota allows them, the system does not.
  Elsewhere store(RLIMIT_AS, 600 << 20, {.total_bytes = size_t(4) << 30});
  const auto rank = dist::connect_tcp_store("127.0.0.1", store.port, 60s);
  CHECK(rank->add("count", 1) == 1);
  int refused = 0;
  std::shared_ptr<dist::Store> greedy;
  for (int i = 0; i < 100 && refused == 0; ++i) {
    if (!greedy) greedy = dist::connect_tcp_store("127.0.0.1", store.port, 60s);
    try {
      greedy->set("value" + std::to_string(i), std::string(8'000'000, 'x'));
    } catch (const DistError&) {
      ++refused;
    }
  }
  CHECK(refused == 1);
  CHECK(rank->add("count", 1) == 2);
  CHECK(rank->get("value0", 60s).size() == 8'000'000);
  store.end();
}

TEST_CASE("a campaign of strangers: the ranks of the job meet as they would have without them") {
  const dist::StoreJob job{.run = "this one", .world_size = 4};
  dist::TcpStoreServer server("127.0.0.1", 0, job);
  const std::string wrong = dist::greeting_text({"another", 4, "rank 0"});
  std::atomic<bool> over{false};
  std::vector<std::thread> strangers;
  for (unsigned seed = 0; seed < 4; ++seed)
    strangers.emplace_back([&, seed] {
      std::mt19937 random(seed);
      std::vector<dist::Socket> kept;
      // Bounded, since closed connections keep their ports for a minute.
      for (int visit = 0; visit < 500 && !over; ++visit) {
        dist::Socket socket = stranger(server.port());
        if (!socket) continue;
        std::string words(random() % 2 ? dist::kStoreMagic : "");
        for (size_t n = random() % 200; n > 0; --n)
          words += static_cast<char>(random());
        try {
          if (random() % 8 == 0) {
            words = dist::kStoreMagic;
            dist::send_all(socket, words.data(), words.size(), in(60s));
            dist::send_string(socket, wrong, in(60s));
          } else {
            dist::send_all(socket, words.data(), words.size(), in(60s));
          }
        } catch (const DistError&) {
          continue;
        }
        if (random() % 2) kept.push_back(std::move(socket));
        if (kept.size() > 100) kept.clear();
      }
    });
  std::vector<std::thread> ranks;
  std::vector<std::string> failed(4);
  for (int rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&, rank] {
      failed[static_cast<size_t>(rank)] = message_of([&] {
        for (int round = 0; round < 20; ++round) {
          dist::StoreJob mine = job;
          mine.who = "rank " + std::to_string(rank);
          const auto store = dist::connect_tcp_store("127.0.0.1", server.port(), 10s, mine);
          const std::string key = "round" + std::to_string(round);
          store->set(key + "/" + std::to_string(rank), std::to_string(rank * round));
          for (int r = 0; r < 4; ++r)
            if (store->get(key + "/" + std::to_string(r), 60s) != std::to_string(r * round))
              throw DistError("a wrong value in round {}", round);
          store->add("sum", rank);
        }
      });
    });
  for (std::thread& rank : ranks)
    rank.join();
  over = true;
  for (std::thread& thread : strangers)
    thread.join();
  for (const std::string& text : failed)
    CHECK(text == "");
  CHECK(dist::connect_tcp_store("127.0.0.1", server.port(), 5s, job)->get("sum", 60s) == "120");
}

TEST_CASE("without descriptors a store says why it lets nobody in, and who connects what is missing" *
          doctest::skip(kSanitized)) {
  std::promise<std::string> told;
  std::atomic<bool> heard{false};
  const auto before = set_warning_handler([&](const Warning& warning) {
    if (!heard.exchange(true)) told.set_value(warning.message + "; " + warning.advice);
  });
  const dist::TcpStoreServer server("127.0.0.1", 0);
  int go[2];
  REQUIRE(pipe(go) == 0);
  const pid_t strangers = fork();
  if (strangers == 0) {
    close(go[1]);
    // Waits until no descriptor is left: otherwise the store could have accepted all connections.
    char word = 0;
    [[maybe_unused]] ssize_t got = read(go[0], &word, 1);
    std::vector<dist::Socket> open;
    for (int i = 0; i < 8; ++i)
      open.push_back(stranger(server.port()));
    got = read(go[0], &word, 1);  // until the test is over
    _exit(0);
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t most = limit.rlim_cur;
  const int lowest_free = dup(go[0]);
  limit.rlim_cur = static_cast<rlim_t>(lowest_free) + 1;
  setrlimit(RLIMIT_NOFILE, &limit);
  const bool asked = write(go[1], "g", 1) == 1;
  std::string error;
  try {
    dist::connect_tcp_store("127.0.0.1", server.port(), 5s);
  } catch (const DistError& failed) {
    error = failed.what();
  }
  std::future<std::string> words = told.get_future();
  const bool in_time = words.wait_for(10s) == std::future_status::ready;
  limit.rlim_cur = most;
  setrlimit(RLIMIT_NOFILE, &limit);
  for (const int descriptor : {lowest_free, go[0], go[1]})
    close(descriptor);
  waitpid(strangers, nullptr, 0);
  set_warning_handler(before);
  REQUIRE(asked);
  REQUIRE(in_time);
  const std::string text = words.get();
  CHECK_MESSAGE(text.find("cannot let anybody in now: Too many open files; 0 ranks and launchers") != std::string::npos,
                text);
  CHECK_MESSAGE(text.find("ulimit -n") != std::string::npos, text);
  CHECK_MESSAGE(error.find("Too many open files; raise the limit of open files (ulimit -n)") != std::string::npos,
                error);
}

}  // namespace brigade::test::store_strangers_test
