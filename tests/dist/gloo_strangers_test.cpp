// Strangers connect to the listeners of a Gloo group while its ranks meet: the ranks still reach each other.
#include <brigade/core/error.h>
#include <brigade/dist/groups/backends.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/rendezvous/store.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace brigade::test::gloo_strangers_test {
using namespace std::chrono_literals;

// The listening TCP sockets of this process.
std::vector<sockaddr_in> listeners() {
  std::vector<sockaddr_in> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    int listens = 0;
    socklen_t size = sizeof listens;
    sockaddr_in own{};
    socklen_t length = sizeof own;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0 && own.sin_family == AF_INET)
      found.push_back(own);
  }
  return found;
}

bool has(const std::vector<sockaddr_in>& all, const sockaddr_in& one) {
  return std::any_of(all.begin(), all.end(), [&](const sockaddr_in& each) {
    return each.sin_port == one.sin_port && each.sin_addr.s_addr == one.sin_addr.s_addr;
  });
}

int open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

// What a stranger does with a connection, which stays open until the end.
using Deed = std::function<void(int fd, std::mt19937& numbers)>;

void send_words(int fd, const std::string& words) {
  static_cast<void>(send(fd, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}
std::string random_words(size_t bytes, std::mt19937& numbers) {
  std::string words(bytes, '\0');
  for (char& c : words)
    c = static_cast<char>(numbers());
  return words;
}

struct Deeds {
  const char* name;
  Deed act;
};

// Three ranks meet, the last one late, while strangers visit every listener again and again; then the ranks compute a
// sum. Returns what each rank got, or its error.
std::vector<std::string> meet(const Deed& act, int& visits) {
  const std::string made = (std::filesystem::temp_directory_path() / "brigade-test-XXXXXX").string();
  std::string folder = made;
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  std::atomic<bool> over{false};
  std::thread strangers([&] {
    std::mt19937 numbers(1);
    std::vector<int> kept;
    std::vector<sockaddr_in> before;
    while (!over) {
      const std::vector<sockaddr_in> now = listeners();
      for (const sockaddr_in& where : now) {
        // A stranger needs a moment to find a listener: Gloo's own is there for microseconds, or,
        // in later versions, open to others for that long (joined_context.cpp).
        if (!has(before, where)) continue;
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        kept.push_back(fd);
        // Where strangers' packets are dropped, connect() would wait for minutes.
        const timeval patience{.tv_sec = 0, .tv_usec = 50'000};
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) continue;
        ++visits;
        act(fd, numbers);
      }
      if (kept.size() > 300) {
        for (const int fd : kept)
          close(fd);
        kept.clear();
      }
      before = now;
      std::this_thread::sleep_for(1ms);
    }
    for (const int fd : kept)
      close(fd);
  });
  std::vector<std::future<std::string>> ranks;
  for (int r = 0; r < 3; ++r) {
    ranks.push_back(std::async(std::launch::async, [&, r]() -> std::string {
      try {
        if (r == 2) std::this_thread::sleep_for(200ms);
        const auto group =
            dist::find_backend("gloo").make(dist::open_file_store(folder + "/store", 3), r, 3, 5000ms, "group");
        Tensor sum = full({4}, static_cast<double>(r + 1));
        group->all_reduce(sum)->wait();
        return std::to_string(sum.data_ptr<float>()[3]);
      } catch (const std::exception& error) {
        return error.what();
      }
    }));
  }
  std::vector<std::string> results;
  for (auto& rank : ranks)
    results.push_back(rank.get());
  over = true;
  strangers.join();
  std::filesystem::remove_all(folder);
  return results;
}

TEST_CASE("gloo: strangers at the listeners change nothing while the ranks meet") {
  if (!dist::find_backend("gloo").missing.empty()) {
    MESSAGE("SKIPPED: this build has no Gloo");
    return;
  }
  const Deeds all[] = {
      {"say nothing", [](int, std::mt19937&) {}},
      {"send garbage",
       [](int fd, std::mt19937& numbers) { send_words(fd, random_words(numbers() % 4096 + 1, numbers)); }},
      {"send zeros", [](int fd, std::mt19937&) { send_words(fd, std::string(4096, '\0')); }},
      {"hang up", [](int fd, std::mt19937&) { shutdown(fd, SHUT_RDWR); }},
  };
  for (const Deeds& deed : all) {
    CAPTURE(deed.name);
    int visits = 0;
    const int before = open_descriptors();
    for (const std::string& result : meet(deed.act, visits))
      CHECK(result == "6.000000");
    CHECK(visits > 5);
    CHECK(open_descriptors() == before);
  }
}

}  // namespace brigade::test::gloo_strangers_test
