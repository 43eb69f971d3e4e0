// A Gloo group whose store is gone: errors claim nothing about ranks whose activity could not be looked up.
#include <brigade/core/error.h>
#include <brigade/dist/groups/backends.h>
#include <brigade/dist/rendezvous/store.h>

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace brigade::test::gloo_store_test {
using namespace std::chrono_literals;

// The error of rank 0, whose wait times out in a group whose store ends once all ranks have met.
std::string time_out_without_store(int size) {
  auto server = std::make_unique<dist::TcpStoreServer>("127.0.0.1", 0);
  const int port = server->port();
  std::promise<void> gone;
  const std::shared_future<void> store_gone = gone.get_future().share();
  std::vector<std::promise<void>> met(static_cast<size_t>(size));
  std::vector<std::future<std::string>> ranks;
  for (int r = 0; r < size; ++r) {
    ranks.push_back(std::async(std::launch::async, [&met, port, r, size, store_gone]() -> std::string {
      const auto store = dist::connect_tcp_store("127.0.0.1", port, 5s);
      const auto group = dist::find_backend("gloo").make(store, r, size, 600ms, "group");
      met[static_cast<size_t>(r)].set_value();
      store_gone.wait();
      if (r > 0) {
        std::this_thread::sleep_for(1500ms);
        return "";
      }
      try {
        group->barrier();
      } catch (const TimeoutError& error) {
        return error.what();
      }
      return "no time-out";
    }));
  }
  for (auto& each : met)
    each.get_future().wait();
  server.reset();
  gone.set_value();
  std::string text = ranks[0].get();
  for (size_t r = 1; r < ranks.size(); ++r)
    ranks[r].get();
  return text;
}

TEST_CASE("gloo: of ranks that cannot be asked for nothing is said") {
  if (!dist::find_backend("gloo").missing.empty()) {
    MESSAGE("SKIPPED: this build has no Gloo");
    return;
  }
  const std::string two = time_out_without_store(2);
  CHECK_MESSAGE(two.find("(rank 0 timed out after 600 ms).") != std::string::npos, two);
  CHECK_MESSAGE(two.find("\nwhy: it is not known where rank 1 is: the store could not be asked: ") != std::string::npos,
                two);
  const std::string three = time_out_without_store(3);
  CHECK_MESSAGE(
      three.find("where the other ranks are is not known: the store could not be asked: ") != std::string::npos, three);
  CHECK_MESSAGE(three.find("waiting for rank") == std::string::npos, three);
  for (const std::string& text : {two, three})
    CHECK_MESSAGE(text.find("has not called") == std::string::npos, text);
}

}  // namespace brigade::test::gloo_store_test
