// Waiting for other ranks through a store: when the wait ends, and which rank its error names.
#include <brigade/dist/rendezvous/launch/node_exits.h>
#include <brigade/dist/rendezvous/rendezvous.h>

#include <scoped_environment.h>

#include <doctest/doctest.h>

#include <future>
#include <string>

namespace brigade::test::awaited_ranks_test {
using namespace std::chrono_literals;

struct Meeting {
  dist::TcpStoreServer server{"127.0.0.1", 0};
  std::shared_ptr<dist::Store> store = dist::connect_tcp_store("127.0.0.1", server.port(), 5s);

  // The text of the error that ends the wait of rank `rank` of `size` for rank `other`.
  template <class E>
  std::string wait(int rank, int size, int other, std::chrono::milliseconds timeout, const dist::RankNames& names = {},
                   const std::string& prefix = "group") const {
    dist::AwaitedRanks others(*store, prefix, rank, size, timeout, names);
    try {
      others.get(prefix + "/never", other);
    } catch (const E& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_CASE("a wait for a rank ends at once when the launcher says that its process has ended, or the attempt") {
  // The environment of a rank in attempt 1 of a launcher.
  const ScopedEnvironment second{{"BRIGADE_AGENT_STORE", "1"}, {"TORCHELASTIC_RESTART_COUNT", "1"}};
  const Meeting meeting;
  // Entries of another attempt are ignored.
  meeting.store->set(dist::rank_ended_key(0, 1), "exited with status 9");
  meeting.store->set(dist::attempt_over_key(0), "1 9 0\nnode 1 failed with status 9: long ago");
  CHECK(meeting.wait<TimeoutError>(0, 2, 1, 20ms) ==
        "rendezvous: rank 0 waited 20 ms for rank 1 of 2, which did not join");

  meeting.store->set(dist::attempt_over_key(1),
                     "1 3 0\nnode 1 failed with status 3: rank 1 exited with status 3 first");
  CHECK(
      meeting.wait<PeerError>(0, 2, 1, 1h) ==
      "rendezvous: rank 0 stopped waiting for rank 1 because attempt 1 of the job has ended: node 1 failed with status 3: rank 1 "
      "exited with status 3 first");
  meeting.store->set(dist::rank_ended_key(1, 1), "exited with status 0");
  CHECK(
      meeting.wait<PeerError>(0, 2, 1, 1h) ==
      "rendezvous: rank 0 stopped waiting for rank 1: the process of rank 1 exited with status 0 before it joined; check the output "
      "of rank 1");
  // A rank that joined before its process ended counts as joined.
  meeting.store->set("group/there", "x");
  dist::AwaitedRanks others(*meeting.store, "group", 0, 2, 1h, {});
  CHECK(others.get("group/there", 1) == "x");
}

TEST_CASE("who waits for a rank that waits itself names the one that is at fault, by its number in the job") {
  const Meeting meeting;
  const dist::RankNames second_host({2, 3});
  // Rank 3 waits for rank 2 on its host, which never joins; rank 1 waits for rank 3.
  CHECK(meeting.wait<TimeoutError>(1, 2, 0, 20ms, second_host, "group/host1") ==
        "rendezvous: rank 3 waited 20 ms for rank 2, which did not join");
  CHECK(meeting.wait<TimeoutError>(1, 4, 3, 20ms) ==
        "rendezvous: rank 1 waited 20 ms for rank 3 of 4, which did not join; rank 3 was itself waiting for rank 2");
}

TEST_CASE("node 0 stays until the others know how the job ended, also one whose launcher was stopped for a while") {
  struct Row {
    bool comes_back;
    int status;
    const char* summary;
  };
  for (const Row& row :
       {Row{true, 0, ""}, Row{false, 1, "all ranks ended well, but the launcher of node 1 was killed"}}) {
    CAPTURE(row.comes_back);
    Meeting meeting;
    dist::LaunchOptions options;
    options.nodes = 2;
    auto other = dist::connect_tcp_store("127.0.0.1", meeting.server.port(), 5s, {.who = "node 1"});
    other->set("launch/attempt/0/well/1", "");  // and then it stops
    const auto is_connected = [&](int) { return meeting.server.is_connected("node 1"); };
    dist::NodeExits exits(meeting.store, options, is_connected, {.between_looks = 5ms});
    exits.begin(0);
    auto ended = std::async(std::launch::async, [&] {
      const dist::JobSignals signals;
      dist::LaunchOutcome outcome;
      CHECK(exits.is_over(outcome, signals));
      exits.join(outcome, signals);
      return outcome;
    });
    CHECK(ended.wait_for(100ms) == std::future_status::timeout);
    if (row.comes_back) {
      other->set("launch/exits/1/knows", "");
    } else {
      other.reset();
    }
    const dist::LaunchOutcome outcome = ended.get();
    CHECK(outcome.exit_code == row.status);
    CHECK_MESSAGE(outcome.summary.starts_with(row.summary), outcome.summary);
  }
}

}  // namespace brigade::test::awaited_ranks_test
