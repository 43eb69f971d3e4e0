#include <brigade/dist/rendezvous/launch/node_exits.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <thread>
#include <vector>

namespace brigade::test::nodes_test {
using namespace std::chrono_literals;

// What each launcher gets: "first rank of world size", or the text of its error.
std::vector<std::string> meet(const std::vector<dist::LaunchOptions>& launchers) {
  dist::TcpStoreServer server("127.0.0.1", 0);
  std::vector<std::string> results(launchers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < launchers.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        const auto store = dist::connect_tcp_store("127.0.0.1", server.port(), 5s);
        const dist::NodePlace place = dist::meet_nodes(*store, launchers[i]);
        results[i] = fmt::format("{} of {}", place.first_rank, place.world_size);
      } catch (const DistError& error) {
        results[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  return results;
}

dist::LaunchOptions launcher(int node, int nodes, int ranks) {
  dist::LaunchOptions options;
  options.ranks = ranks;
  options.nodes = nodes;
  options.node_rank = node;
  options.meeting_timeout = 300ms;
  return options;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("launchers number their ranks in the order of the nodes, however many each starts") {
  CHECK(meet({launcher(0, 3, 2), launcher(1, 3, 1), launcher(2, 3, 4)}) ==
        std::vector<std::string>{"0 of 7", "2 of 7", "3 of 7"});
}

TEST_CASE("a launcher that does not come, comes twice, or counts otherwise is named") {
  CHECK(contains(meet({launcher(0, 2, 1)})[0], "launch: node 0 waited 300 ms for node 1 of 2, which did not come"));
  const auto twice = meet({launcher(0, 2, 1), launcher(0, 2, 1)});
  CHECK((contains(twice[0], "two launchers have --node-rank 0") ||
         contains(twice[1], "two launchers have --node-rank 0")));
  const auto counts = meet({launcher(0, 2, 1), launcher(1, 3, 1)});
  CHECK(contains(counts[0], "--nnodes is 2 on node 0, but 3 on node 1"));
  CHECK(contains(counts[1], "--nnodes is 3 on node 1, but 2 on node 0"));
  dist::LaunchOptions again = launcher(1, 2, 1);
  again.max_restarts = 3;
  CHECK(contains(meet({launcher(0, 2, 1), again})[0], "--max-restarts is 0 on node 0, but 3 on node 1"));
}

TEST_CASE("a store knows the address of this end of the way to it") {
  dist::TcpStoreServer server("127.0.0.1", 0);
  CHECK(dist::connect_tcp_store("127.0.0.1", server.port(), 5s)->local_address() == "127.0.0.1");
}

}  // namespace brigade::test::nodes_test
