// The secret of a job at its TCP store: a client that does not know it is refused and learns nothing.
#include <brigade/core/warning.h>
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/dist/rendezvous/secret.h>
#include <brigade/dist/rendezvous/store.h>
#include <brigade/dist/rendezvous/store/greeting.h>
#include <brigade/dist/rendezvous/store/socket.h>

#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/socket.h>

namespace brigade::test::store_secret_test {
using namespace std::chrono_literals;

const dist::StoreJob kJob{.run = "r", .world_size = 2, .who = "rank 1", .secret = "the secret of this job"};

dist::StoreJob with_secret(const std::string& secret) {
  dist::StoreJob job = kJob;
  job.secret = secret;
  return job;
}

dist::Deadline soon() { return std::chrono::steady_clock::now() + 5s; }

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string refusal(int port, const dist::StoreJob& job) {
  return message_of([&] { dist::connect_tcp_store("127.0.0.1", port, 5s, job); });
}

// RAII: captures the warnings of the store.
class Told {
 public:
  Told()
      : before_(set_warning_handler([this](const Warning& warning) {
          const std::lock_guard lock(mutex_);
          told_.push_back(warning.message);
        })) {}
  ~Told() { set_warning_handler(before_); }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> told_;
  std::function<void(const Warning&)> before_;
};

dist::Socket visitor(int port, const std::string& greeting, std::string_view magic = dist::kStoreMagic) {
  dist::Socket socket = dist::try_connect("127.0.0.1", port, soon());
  dist::send_all(socket, magic.data(), magic.size(), soon());
  dist::send_string(socket, greeting, soon());
  return socket;
}

// The first answer to a greeting.
std::string answer_of(const dist::Socket& socket) {
  std::string magic(dist::kStoreMagic.size(), ' ');
  dist::receive_all(socket, magic.data(), magic.size(), soon());
  CHECK(magic == dist::kStoreMagic);
  return dist::receive_string(socket, soon());
}

bool closed(const dist::Socket& socket) {
  char byte = 0;
  try {
    dist::receive_all(socket, &byte, 1, soon());
  } catch (const PeerError&) {
    return true;
  }
  return false;
}

TEST_CASE("those who know the secret meet; a wrong one, none, and one too many are named on both sides") {
  Told told;
  const dist::TcpStoreServer server("127.0.0.1", 0, kJob);
  const dist::TcpStoreServer open("127.0.0.1", 0, with_secret(""));
  const auto rank = dist::connect_tcp_store("127.0.0.1", server.port(), 5s, kJob);
  CHECK(rank->add("count", 1) == 1);
  const std::string another = "what a stranger has guessed";
  const std::string texts[] = {refusal(server.port(), with_secret(another)), refusal(server.port(), with_secret("")),
                               refusal(open.port(), kJob)};
  CHECK(has(texts[0], "refuses rank 1: its job has another secret: two jobs use the same port, or BRIGADE_SECRET"));
  CHECK(has(texts[1], "refuses rank 1: its job has a secret, and this one has brought none: two jobs use the same"));
  CHECK(has(texts[2], "refuses rank 1: its job has no secret, and this one has brought one: two jobs use the same"));
  const std::vector<std::string> warnings = told.all();
  REQUIRE(warnings.size() == 3);
  CHECK(has(warnings[0], "has refused rank 1 from 127.0.0.1: its job has another secret"));
  CHECK(has(warnings[1], "has refused rank 1 from 127.0.0.1: its job has a secret, and this one has brought none"));
  CHECK(has(warnings[2], "has refused rank 1 from 127.0.0.1: its job has no secret, and this one has brought one"));
  for (size_t i = 0; i < 3; ++i) {
    for (const std::string& secret : {another, kJob.secret}) {
      CHECK_FALSE(has(texts[i], secret));
      CHECK_FALSE(has(warnings[i], secret));
    }
  }
  CHECK(rank->add("count", 1) == 2);
}

TEST_CASE("a world size that differs is reported only to who knows the secret only") {
  Told told;
  const dist::TcpStoreServer server("127.0.0.1", 0, kJob);
  dist::StoreJob larger = kJob;
  larger.world_size = 7;
  CHECK(has(refusal(server.port(), larger), "its job has 2 ranks, and this one 7"));
  larger.secret = "what a stranger has guessed";
  CHECK_FALSE(has(refusal(server.port(), larger), "2 ranks"));
}

TEST_CASE("a greeting and a proof that were overheard open no other connection") {
  Told told;
  const dist::TcpStoreServer server("127.0.0.1", 0, kJob);
  const std::string greeting = dist::greeting_text(kJob, dist::random_token());
  const dist::Socket rank = visitor(server.port(), greeting);
  const std::string asked = answer_of(rank);
  REQUIRE(asked.starts_with('?'));
  const std::string proof = dist::proof_of(dist::Prover::client, kJob.secret, asked.substr(1), greeting);
  dist::send_string(rank, proof, soon());
  const std::string welcome = dist::receive_string(rank, soon());
  CHECK(welcome == "=" + dist::proof_of(dist::Prover::store, kJob.secret, asked.substr(1), greeting));

  for (const std::string& replayed : {proof, welcome.substr(1), std::string(64, '0')}) {
    const dist::Socket stranger = visitor(server.port(), greeting);
    const std::string question = answer_of(stranger);
    CHECK(question.starts_with('?'));
    CHECK(question != asked);
    dist::send_string(stranger, replayed, soon());
    CHECK(dist::receive_string(stranger, soon()).starts_with("!its job has another secret"));
    CHECK(closed(stranger));
  }
  // A proof that is sent before the question is refused as well.
  const dist::Socket eager = visitor(server.port(), greeting);
  dist::send_string(eager, proof, soon());
  CHECK(answer_of(eager).starts_with('?'));
  CHECK(dist::receive_string(eager, soon()).starts_with("!its job has another secret"));
  CHECK(closed(eager));
  // The first connection still belongs to the job.
  dist::send_string(rank, std::string("Acount\0001", 8), soon());
  CHECK(dist::receive_string(rank, soon()) == "1");
}

TEST_CASE("before its proof a client is a stranger: its requests end it, and its time is limited") {
  const dist::TcpStoreServer server("127.0.0.1", 0, kJob, {.greeting = 300ms});
  const std::string greeting = dist::greeting_text(kJob, dist::random_token());
  const dist::Socket hasty = visitor(server.port(), greeting);
  CHECK(answer_of(hasty).starts_with('?'));
  dist::send_string(hasty, std::string("Acount\0001", 8), soon());
  CHECK(closed(hasty));
  const dist::Socket idle = visitor(server.port(), greeting);
  CHECK(answer_of(idle).starts_with('?'));
  CHECK(closed(idle));
  CHECK(dist::connect_tcp_store("127.0.0.1", server.port(), 5s, kJob)->add("count", 1) == 1);
}

TEST_CASE("what has taken the store's port, and does not know the secret, gets nothing from a rank") {
  // It welcomes at once, or sends the rank's own proof back, or one that it made up.
  for (const std::string way : {"welcome", "reflect", "invent"}) {
    CAPTURE(way);
    const dist::Socket listener = dist::listen_on("127.0.0.1", 0);
    std::string heard;
    std::thread impostor([&] {
      const dist::Socket client(accept(listener.fd(), nullptr, nullptr));
      std::string magic(dist::kStoreMagic.size(), ' ');
      dist::receive_all(client, magic.data(), magic.size(), soon());
      dist::receive_string(client, soon());
      dist::send_all(client, dist::kStoreMagic.data(), dist::kStoreMagic.size(), soon());
      if (way == "welcome") {
        dist::send_string(client, "=", soon());
      } else {
        dist::send_string(client, "?" + dist::random_token(), soon());
        const std::string proof = dist::receive_string(client, soon());
        dist::send_string(client, "=" + (way == "reflect" ? proof : dist::random_token()), soon());
      }
      CHECK(closed(client));
    });
    const std::string text = refusal(dist::local_port(listener), kJob);
    CHECK(has(text, "does not know the secret of this job: another program has taken that port"));
    impostor.join();
  }
}

TEST_CASE("another version of the protocol is named on both sides") {
  Told told;
  const dist::TcpStoreServer server("127.0.0.1", 0, kJob);
  const dist::Socket older = visitor(server.port(), std::string("2\0r\0rank 0", 10), "brigade-store-2\n");
  CHECK(answer_of(older) ==
        "!it speaks brigade-store-3, and this one brigade-store-2: all ranks and launchers of a job need the same "
        "version of Brigade");
  CHECK(closed(older));
  REQUIRE(told.all().size() == 1);
  CHECK(has(told.all()[0],
            "has refused a process from 127.0.0.1: it speaks brigade-store-3, and this one brigade-store-2"));

  const dist::Socket listener = dist::listen_on("127.0.0.1", 0);
  std::thread newer([&] {
    const dist::Socket client(accept(listener.fd(), nullptr, nullptr));
    std::string magic(dist::kStoreMagic.size(), ' ');
    dist::receive_all(client, magic.data(), magic.size(), soon());
    dist::receive_string(client, soon());
    dist::send_all(client, "brigade-store-4\n", magic.size(), soon());
    CHECK(closed(client));
  });
  CHECK(has(refusal(dist::local_port(listener), kJob),
            "refuses rank 1: it speaks brigade-store-4, and this one brigade-store-3: all ranks and launchers"));
  newer.join();
}

TEST_CASE("ranks that meet by tcp:// or env:// bring the secret of their environment, without a launcher that hosts") {
  Told told;
  const int port = dist::TcpStoreServer("127.0.0.1", 0).port();
  const auto open = [&](int rank, const char* secret, bool by_env) {
    setenv("BRIGADE_SECRET", secret, 1);
    const dist::LaunchedRank launched{.launcher = "torchrun", .rank = rank, .world_size = 2};
    const auto store =
        dist::open_store(by_env ? "env://" : fmt::format("tcp://127.0.0.1:{}", port),
                         {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}}, launched, 5s);
    unsetenv("BRIGADE_SECRET");
    return store;
  };
  for (const bool by_env : {false, true}) {
    CAPTURE(by_env);
    const auto first = open(0, kJob.secret.c_str(), by_env);
    CHECK(first->add("count", 1) == 1);
    CHECK(open(1, kJob.secret.c_str(), by_env)->add("count", 1) == 2);
    CHECK(has(message_of([&] { open(1, "what a stranger has guessed", by_env); }),
              "refuses rank 1: its job has another secret"));
    CHECK(has(message_of([&] { open(1, "", by_env); }), "refuses rank 1: its job has a secret"));
    unsetenv("BRIGADE_SECRET");
  }
  const auto without = open(0, "", true);
  CHECK(open(1, "", true)->add("count", 1) == 1);
}

}  // namespace brigade::test::store_secret_test
