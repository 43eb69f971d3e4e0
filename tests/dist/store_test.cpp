#include <brigade/core/warning.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/rendezvous/store.h>
#include <brigade/dist/rendezvous/store/greeting.h>
#include <brigade/dist/rendezvous/store/socket.h>

#include <scoped_environment.h>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

namespace brigade::test::store_test {
using namespace std::chrono_literals;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void use_store(dist::Store& a, dist::Store& b) {
  a.set("key with / and spaces", std::string("bytes\0and more", 14));
  CHECK(b.get("key with / and spaces", 1s) == std::string("bytes\0and more", 14));
  CHECK_FALSE(b.check("other"));
  CHECK(a.add("count", 3) == 3);
  CHECK(b.add("count", -1) == 2);
  auto waiting = std::async(std::launch::async, [&] { return b.get("later", 5s); });
  a.set("later", "now");
  CHECK(waiting.get() == "now");
  a.set("text", "twelve");
  const std::string text = message_of([&] { a.add("text", 1); });
  CHECK(text.find("add('text', 1) expects a whole number of 64 bits under that key, but its value is 'twelve'") !=
        std::string::npos);
  CHECK(b.get("text", 1s) == "twelve");
  a.set("empty", "");
  CHECK_THROWS_AS(a.add("empty", 1), DistError);
  a.set("most", "9223372036854775807");
  CHECK(message_of([&] { b.add("most", 1); }).find("would leave the range of 64 bits") != std::string::npos);
  CHECK(b.add("most", -7) == 9223372036854775800);
  CHECK_THROWS_AS(a.get("never", 30ms), TimeoutError);
  CHECK(message_of([&] { a.get("never", 30ms); }).find("the key 'never' did not appear") != std::string::npos);
}

TEST_CASE("the TCP store sets, gets, waits and adds") {
  dist::TcpStoreServer server("127.0.0.1", 0);
  const auto a = dist::connect_tcp_store("127.0.0.1", server.port(), 5s);
  const auto b = dist::connect_tcp_store("localhost", server.port(), 5s);
  use_store(*a, *b);
  a->set("large", std::string(1 << 20, 'x'));
  CHECK(b->get("large", 5s).size() == 1 << 20);
}

TEST_CASE("a value of 16 MiB and more arrives; one that is too large is refused before it is sent") {
  dist::TcpStoreServer server("127.0.0.1", 0);
  const auto store = dist::connect_tcp_store("127.0.0.1", server.port(), 5s);
  for (const size_t bytes : {size_t(16) << 20, dist::kMostStoreValueBytes}) {
    CAPTURE(bytes);
    store->set("large", std::string(bytes - 1, 'x') + 'y');
    const std::string value = store->get("large", 5s);
    CHECK(value.size() == bytes);
    CHECK(value.back() == 'y');
  }
  CHECK(message_of([&] {
          store->set("larger", std::string(dist::kMostStoreValueBytes + 1, 'x'));
        }).find("the value of 'larger' has 67108865 bytes, more than the 67108864 that a TCP store takes") !=
        std::string::npos);
  CHECK_THROWS_AS(store->set(std::string("a\0b", 3), "1"), ValueError);
  CHECK(store->add("still there", 1) == 1);
}

TEST_CASE("whoever waits at an ephemeral port does not meet itself, and leaves the port to the store") {
  // The kernel gives ports of one parity to sockets that connect, and of the other to those that bind to any port:
  // connections to a port and to its neighbor each met themselves after some ten thousand attempts.
  const int port = dist::local_port(dist::listen_on("127.0.0.1", 0));
  int met = 0;
  // An attempt takes long where many connections were closed a moment ago.
  for (const int waited_for : {port, port - 1}) {
    const auto enough = std::chrono::steady_clock::now() + 10s;
    for (int i = 0; i < 30'000 && std::chrono::steady_clock::now() < enough; ++i)
      met += static_cast<bool>(dist::try_connect("127.0.0.1", waited_for, std::chrono::steady_clock::now() + 2s));
  }
  CHECK(met == 0);
  const dist::TcpStoreServer server("127.0.0.1", port);
  CHECK(server.port() == port);
}

TEST_CASE("the file store sets, gets, waits and adds, and is removed by the last to leave") {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("brigade-store-" + std::to_string(getpid()))).string();
  {
    const auto a = dist::open_file_store(folder, 2);
    const auto b = dist::open_file_store(folder, 2);
    use_store(*a, *b);
    CHECK(std::filesystem::exists(folder));
  }
  CHECK_FALSE(std::filesystem::exists(folder));
  CHECK_THROWS_AS(dist::open_file_store("/proc/no/such/place", 1), DistError);
}

TEST_CASE("a port in use is named, with what to do") {
  dist::TcpStoreServer server("127.0.0.1", 0);
  const std::string text = message_of([&] { dist::TcpStoreServer second("127.0.0.1", server.port()); });
  CHECK(text.find("cannot listen on port " + std::to_string(server.port())) != std::string::npos);
  CHECK(text.find("already in use") != std::string::npos);
  CHECK(text.find("--master-port") != std::string::npos);
}

TEST_CASE("nobody there, a foreign service, and nonsense are distinguished, and harm no one") {
  int port = 0;
  {
    dist::TcpStoreServer gone("127.0.0.1", 0);
    port = gone.port();
  }
  CHECK(message_of([&] { dist::connect_tcp_store("127.0.0.1", port, 100ms); }).find("no store answered") !=
        std::string::npos);

  // A service that answers something else.
  const dist::Socket listener = dist::listen_on("127.0.0.1", 0);
  std::thread foreign([&] {
    const dist::Socket client(accept(listener.fd(), nullptr, nullptr));
    send(client.fd(), "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL);
    // Closing a connection with unread bytes discards what was sent.
    shutdown(client.fd(), SHUT_WR);
    for (char word[256]; recv(client.fd(), word, sizeof word, 0) > 0;) {
    }
  });
  CHECK(message_of([&] {
          dist::connect_tcp_store("127.0.0.1", dist::local_port(listener), 5s);
        }).find("is not a Brigade store") != std::string::npos);
  foreign.join();

  // The server survives clients that speak nonsense.
  dist::TcpStoreServer server("127.0.0.1", 0);
  for (const std::string& nonsense :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("brigade-store-1\n\xff\xff\xff\xff nonsense"),
        std::string("brigade-store-1\n\x05\0\0\0Zzzzz", 25), std::string("b")}) {
    const dist::Socket client = dist::try_connect("127.0.0.1", server.port(), std::chrono::steady_clock::now() + 2s);
    dist::send_all(client, nonsense.data(), nonsense.size(), std::chrono::steady_clock::now() + 2s);
  }
  const auto store = dist::connect_tcp_store("127.0.0.1", server.port(), 5s);
  store->set("alive", "yes");
  CHECK(store->get("alive", 1s) == "yes");
  CHECK(message_of([] { dist::connect_tcp_store("no.such.host.invalid", 1, 100ms); }).find("cannot resolve host") !=
        std::string::npos);
}

TEST_CASE("another run and another world size are named on both sides, and harm neither job") {
  std::vector<std::string> told;
  std::mutex mutex;
  const auto before = set_warning_handler([&](const Warning& warning) {
    const std::lock_guard lock(mutex);
    told.push_back(warning.message);
  });
  dist::TcpStoreServer server("127.0.0.1", 0, {.run = "secret-name", .world_size = 2});
  const auto come = [&](const dist::StoreJob& job) {
    return dist::connect_tcp_store("127.0.0.1", server.port(), 5s, job);
  };
  const auto rank = come({"secret-name", 2, "rank 1"});
  const std::string world = message_of([&] { come({"secret-name", 4, "rank 3"}); });
  CHECK(world.find("refuses rank 3: its job has 2 ranks, and this one 4") != std::string::npos);
  const std::string run = message_of([&] { come({"other", 2, "rank 0"}); });
  CHECK(run.find("refuses rank 0: it belongs to another run than 'other'") != std::string::npos);
  CHECK(run.find("secret-name") == std::string::npos);
  CHECK(message_of([&] { come({}); }).find("another run than this one, which has no name") != std::string::npos);
  for (int i = 0; i < 20; ++i)
    CHECK_THROWS_AS(come({"other", 2, "\033[2Jrank 0"}), DistError);
  CHECK(rank->add("count", 1) == 1);
  {
    const std::lock_guard lock(mutex);
    REQUIRE(told.size() == 10);
    CHECK(told[0].find("has refused rank 3 from 127.0.0.1: its job has 2 ranks, and this one 4") != std::string::npos);
    CHECK(told[1].find("has refused rank 0 from 127.0.0.1: it belongs to another run") != std::string::npos);
    CHECK(told[5].find('\033') == std::string::npos);
  }
  set_warning_handler(before);
}

TEST_CASE("a message that is none ends the connection, and changes nothing") {
  dist::TcpStoreServer server("127.0.0.1", 0, {.world_size = 2});
  const auto store = dist::connect_tcp_store("127.0.0.1", server.port(), 5s);
  CHECK(store->add("group.0/rank/0", 1) == 1);
  const auto message = [](const std::string& text) {
    const auto length = static_cast<uint32_t>(text.size());
    return std::string(reinterpret_cast<const char*>(&length), 4) + text;
  };
  const std::string hello = "brigade-store-3\n" + message(std::string("2\0\0\0", 4));
  const std::string announcement =
      message(std::string("Agroup.0/rank/0\0"
                          "1",
                          17));
  for (const std::string& text : {announcement, "brigade-store-1\n" + announcement, "brigade-store-3\n" + announcement,
                                  "brigade-store-3\n" + message(std::string("-2\0\0\0", 5)) + announcement,
                                  "brigade-store-3\n" + message(std::string("3\0\0\0", 4)) + announcement,
                                  "brigade-store-3\n" + message(std::string("2\0\0", 3)) + announcement,
                                  "brigade-store-3\n" + message(std::string("2\0\0\0nonce", 9)) + announcement,
                                  hello + message(std::string("Agroup.0/rank/0\0"
                                                              "1x",
                                                              18)),
                                  hello + message("Agroup.0/rank/0"), hello + message("Sgroup.0/rank/0"),
                                  hello + message(std::string("Ggroup.0/rank/0\0", 16)), hello + message(""),
                                  hello + std::string("\xff\xff\xff\xff", 4) + announcement}) {
    const dist::Socket client = dist::try_connect("127.0.0.1", server.port(), std::chrono::steady_clock::now() + 2s);
    const auto deadline = std::chrono::steady_clock::now() + 5s;
    dist::send_all(client, text.data(), text.size(), deadline);
    char byte = 0;
    const auto read_to_the_end = [&] {
      while (true)
        dist::receive_all(client, &byte, 1, deadline);
    };
    CHECK_THROWS_AS(read_to_the_end(), PeerError);
  }
  CHECK(store->get("group.0/rank/0", 1s) == "1");
}

TEST_CASE("a program that no launcher has started is a world of one where it says so, and a rank where one has") {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_PORT"})
    unsetenv(name);
  const dist::InitOptions options{.init_method = "env://?alone"};
  for (int again = 0; again < 2; ++again) {
    const dist::ProcessGroupPtr group = dist::init_process_group(options);
    CHECK(group->rank() == 0);
    CHECK(group->size() == 1);
    group->barrier();
  }
  // Incomplete variables of a launcher are an error, as usual.
  const ScopedEnvironment half{{"WORLD_SIZE", "2"}};
  CHECK(message_of([&] { dist::init_process_group(options); }).find("WORLD_SIZE is set (2), but RANK is not") !=
        std::string::npos);
  const ScopedEnvironment rank{{"RANK", "1"}};
  CHECK(message_of([&] { dist::init_process_group(options); }).find("set the environment variable MASTER_PORT") !=
        std::string::npos);
}

TEST_CASE("rendezvous names the variable that is missing or malformed") {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_PORT"})
    unsetenv(name);
  CHECK(message_of([] {
          dist::init_process_group();
        }).find("no launcher has set a rank and a world size; start the program with `brigade run") !=
        std::string::npos);
  const ScopedEnvironment rank{{"RANK", "0"}};
  CHECK(message_of([] { dist::init_process_group(); }).find("WORLD_SIZE") != std::string::npos);
  {
    const ScopedEnvironment bad{{"WORLD_SIZE", "two"}};
    CHECK(message_of([] {
            dist::init_process_group();
          }).find("WORLD_SIZE must be a whole number from 0 to 2147483647, got 'two'") != std::string::npos);
  }
  {
    const ScopedEnvironment two{{"WORLD_SIZE", "2"}};
    CHECK(message_of([] { dist::init_process_group(); }).find("set the environment variable MASTER_PORT") !=
          std::string::npos);
  }
  CHECK(message_of([] { dist::init_process_group({.rank = 3, .world_size = 2}); }).find("rank 3 of a world of 2") !=
        std::string::npos);
  CHECK(message_of([] {
          dist::init_process_group({.backend = "mpi", .rank = 0, .world_size = 1});
        }).find("unknown backend 'mpi'") != std::string::npos);
  CHECK(message_of([] {
          dist::init_process_group({.init_method = "tcp://nowhere", .rank = 0, .world_size = 1});
        }).find("tcp://HOST:PORT") != std::string::npos);
  for (const std::string port : {"0", "70000", "4294996796", "29500x", ""}) {  // 4294996796 is 29500 when it wraps
    CAPTURE(port);
    CHECK(message_of([&] {
            dist::init_process_group({.init_method = "tcp://127.0.0.1:" + port, .rank = 0, .world_size = 1});
          }).find("with a port from 1 to 65535, got 'tcp://127.0.0.1:" + port) != std::string::npos);
  }
}

TEST_CASE("the time-outs of meeting and of collectives: options, variables, their limits") {
  const std::string file =
      "file://" + (std::filesystem::temp_directory_path() / ("brigade-timeouts-" + std::to_string(getpid()))).string();
  dist::InitOptions alone{.backend = "shm", .init_method = file, .rank = 0, .world_size = 1};
  CHECK(dist::init_process_group(alone)->timeout() == std::chrono::seconds(30));
  {
    const ScopedEnvironment set{{"BRIGADE_TIMEOUT", "2.5"}};
    CHECK(dist::init_process_group(alone)->timeout() == std::chrono::milliseconds(2500));
    alone.timeout = std::chrono::seconds(7);  // the program's own option takes precedence
    CHECK(dist::init_process_group(alone)->timeout() == std::chrono::seconds(7));
  }
  for (const std::string bad : {"nan", "-1", "0", "inf", "1e9", "30s"}) {
    CAPTURE(bad);
    const ScopedEnvironment set{{"BRIGADE_TIMEOUT", bad.c_str()}};
    alone.timeout.reset();
    CHECK(message_of([&] {
            dist::init_process_group(alone);
          }).find("BRIGADE_TIMEOUT must be a number of seconds from 0.001 to 31536000, got '" + bad + "'") !=
          std::string::npos);
  }
  {
    // Checked even if the program sets a time-out itself.
    const ScopedEnvironment set{{"BRIGADE_MEETING_TIMEOUT", "x"}};
    alone.timeout = std::chrono::seconds(7);
    CHECK(message_of([&] { dist::init_process_group(alone); }).find("BRIGADE_MEETING_TIMEOUT must be a number") !=
          std::string::npos);
  }
  alone.timeout = std::chrono::milliseconds(0);
  CHECK(message_of([&] {
          dist::init_process_group(alone);
        }).find("expected a timeout from 1 ms to 365 days, got 0 ms") != std::string::npos);
  alone.timeout = std::chrono::milliseconds::max();
  CHECK_FALSE(message_of([&] { dist::init_process_group(alone); }).empty());

  // A rank that does not come: the time-out of the meeting applies, whatever that of collectives is.
  dist::InitOptions two{.backend = "shm", .init_method = file + "-two", .rank = 0, .world_size = 2};
  two.meeting_timeout = std::chrono::milliseconds(50);
  two.timeout = std::chrono::minutes(10);
  CHECK(message_of([&] { dist::init_process_group(two); }).find("rank 0 waited 50 ms for rank 1 of 2") !=
        std::string::npos);
  const ScopedEnvironment meeting{{"BRIGADE_MEETING_TIMEOUT", "0.07"}, {"BRIGADE_TIMEOUT", "600"}};
  two.init_method = file + "-again";
  two.timeout.reset();
  two.meeting_timeout.reset();
  CHECK(message_of([&] { dist::init_process_group(two); }).find("rank 0 waited 70 ms for rank 1 of 2") !=
        std::string::npos);
  for (const char* end : {"", "-two", "-again"})
    std::filesystem::remove_all(file.substr(7) + end);
}

TEST_CASE("a group of one comes up by each way of meeting") {
  for (const std::string backend : {"shm", "gloo", "auto"}) {
    CAPTURE(backend);
    const std::string folder =
        "file://" + (std::filesystem::temp_directory_path() / ("brigade-meet-" + std::to_string(getpid()))).string();
    const auto group =
        dist::init_process_group({.backend = backend, .init_method = folder, .rank = 0, .world_size = 1});
    CHECK(group->size() == 1);
    group->barrier();
  }
  dist::TcpStoreServer probe("127.0.0.1", 0);
  const std::string port = std::to_string(probe.port());
  const ScopedEnvironment agent{{"RANK", "0"},
                                {"WORLD_SIZE", "1"},
                                {"MASTER_ADDR", "127.0.0.1"},
                                {"MASTER_PORT", port.c_str()},
                                {"BRIGADE_AGENT_STORE", "1"}};
  CHECK(dist::init_process_group()->rank() == 0);
}

TEST_CASE("a rank that never comes is a timeout which names it; a rank that comes twice is an error") {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("brigade-late-" + std::to_string(getpid()))).string();
  const auto store = dist::open_file_store(folder, 1);
  CHECK(message_of([&] { dist::make_shm_group(store, 0, 2, 200ms); }).find("rank 0 waited 200 ms for rank 1 of 2") !=
        std::string::npos);
}

TEST_CASE("a store that says nothing any more is distinguished from a rank that does not come") {
  const dist::Socket listener = dist::listen_on("127.0.0.1", 0);
  std::thread silent([&] {
    const dist::Socket client(accept(listener.fd(), nullptr, nullptr));
    const auto soon = std::chrono::steady_clock::now() + 5s;
    std::string magic(dist::kStoreMagic.size(), '\0');
    dist::receive_all(client, magic.data(), magic.size(), soon);
    dist::receive_string(client, soon);
    dist::send_all(client, magic.data(), magic.size(), soon);
    dist::send_string(client, "=", soon);
    for (char word[256]; recv(client.fd(), word, sizeof word, 0) > 0;) {
    }
  });
  const auto store = dist::connect_tcp_store("127.0.0.1", dist::local_port(listener), 1s);
  std::string text;
  try {
    store->get("a key", 5s);
  } catch (const PeerError& error) {
    text = error.what();
  }
  silent.join();
  CHECK(text == "the store at 127.0.0.1:" + std::to_string(dist::local_port(listener)) +
                    " has not answered within 1000 ms: the process that hosts it is stopped or overloaded");
}

TEST_CASE("who only hangs up is no foreign service for sure") {
  const dist::Socket listener = dist::listen_on("127.0.0.1", 0);
  std::atomic<bool> over{false};
  std::thread hanging_up([&] {
    while (!over)
      dist::Socket(accept(listener.fd(), nullptr, nullptr));
  });
  const std::string text = message_of([&] { dist::connect_tcp_store("127.0.0.1", dist::local_port(listener), 300ms); });
  over = true;
  dist::try_connect("127.0.0.1", dist::local_port(listener), std::chrono::steady_clock::now() + 2s);
  hanging_up.join();
  CHECK_MESSAGE(text.find("hangs up without a greeting, for 300 ms now") != std::string::npos, text);
}

}  // namespace brigade::test::store_test
