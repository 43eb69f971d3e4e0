// The client of the TCP store (tcp_server.cpp). The client polls; the server never blocks.
#include <brigade/core/detail/file_formats.h>
#include <brigade/dist/rendezvous/secret.h>
#include <brigade/dist/rendezvous/store/greeting.h>
#include <brigade/dist/rendezvous/store/server.h>
#include <brigade/dist/rendezvous/store/socket.h>

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

namespace brigade::dist {
namespace {

constexpr auto kStep = std::chrono::milliseconds(5);
// Timeout for an answer of a server that has accepted: the connection timeout, clamped to these bounds.
constexpr std::chrono::milliseconds kLeastPatience = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kMostPatience = std::chrono::seconds(10);

Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

class TcpStore final : public Store {
 public:
  TcpStore(const std::string& host, int port, std::chrono::milliseconds timeout, const StoreJob& job)
      : place_(fmt::format("{}:{}", host, port)), patience_(std::clamp(timeout, kLeastPatience, kMostPatience)) {
    const Deadline deadline = in(timeout);
    std::optional<std::string> refusal;
    while (!refusal) {
      socket_ = try_connect(host, port, deadline);
      const bool connected = static_cast<bool>(socket_);
      if (connected) refusal = greet(job);
      if (refusal) break;
      if (std::chrono::steady_clock::now() >= deadline) give_up(connected, timeout);
      std::this_thread::sleep_for(kStep);
    }
    if (!refusal->empty())
      throw DistError("the store at {} refuses {}: {}", place_, job.who.empty() ? "this process" : job.who, *refusal);
    address_ = dist::local_address(socket_);
  }

  void set(const std::string& key, const std::string& value) override {
    if (value.size() > kMostStoreValueBytes)
      throw ValueError(
          "store: the value of '{}' has {} bytes, more than the {} that a TCP store takes; give the other ranks large "
          "data by a broadcast",
          key, value.size(), kMostStoreValueBytes);
    fulfilled(ask("S" + checked(key) + '\0' + value));
  }

  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    const Deadline deadline = in(timeout);
    while (true) {
      const std::string answer = ask("G" + checked(key));
      if (answer.starts_with('=')) return answer.substr(1);
      if (std::chrono::steady_clock::now() >= deadline) {
        throw TimeoutError("the key '{}' did not appear in the store at {} within {} ms", key, place_, timeout.count());
      }
      std::this_thread::sleep_for(kStep);
    }
  }

  int64_t add(const std::string& key, int64_t amount) override {
    return std::atoll(fulfilled(ask("A" + checked(key) + '\0' + std::to_string(amount))).c_str());
  }
  bool check(const std::string& key) override { return ask("G" + checked(key)).starts_with('='); }
  std::string local_address() const override { return address_; }

 private:
  // Returns "", or why the store refuses; nullopt when the connection is closed without an answer: a store with too
  // many strangers closes some connections, and one that is about to exit closes all.
  std::optional<std::string> greet(const StoreJob& job) {
    const std::string greeting = greeting_text(job, job.secret.empty() ? "" : random_token());
    std::string magic(kStoreMagic.size(), '\0');
    std::string answer, store_nonce;
    try {
      send_all(socket_, kStoreMagic.data(), kStoreMagic.size(), in(patience_));
      send_string(socket_, greeting, in(patience_));
      receive_all(socket_, magic.data(), magic.size(), in(patience_));
      if (magic == kStoreMagic) answer = receive_string(socket_, in(patience_), kMostGreetingBytes);
      if (answer.starts_with('?') && !job.secret.empty()) {
        store_nonce = answer.substr(1);
        send_string(socket_, proof_of(Prover::client, job.secret, store_nonce, greeting), in(patience_));
        answer = receive_string(socket_, in(patience_), kMostGreetingBytes);
      }
    } catch (const TimeoutError&) {
      throw TimeoutError(
          "what listens at {} has not greeted within {} ms: it is a store that is slow or has no descriptors left (who hosts "
          "it says so), or another program uses that port",
          place_, patience_.count());
    } catch (const PeerError&) {
      return std::nullopt;
    }
    if (magic != kStoreMagic && magic.starts_with(kStoreFamily)) return other_version(magic, kStoreMagic).reason;
    if (answer.starts_with('!')) return answer.substr(1);
    if (!answer.starts_with('=')) throw_not_a_store(magic == kStoreMagic ? answer : magic);
    // Any process at that port can answer "welcome"; only the store of the job can prove that it knows the secret.
    if (!job.secret.empty() && (store_nonce.empty() || !same_proof(answer.substr(1), proof_of(Prover::store, job.secret,
                                                                                              store_nonce, greeting))))
      throw DistError(
          "what answers at {} does not know the secret of this job: another program has taken that port; choose "
          "another with --master-port or MASTER_PORT",
          place_);
    return "";
  }

  [[noreturn]] void throw_not_a_store(const std::string& said) const {
    throw DistError(
        "what answers at {} is not a Brigade store (it says {}): another program uses that port; choose another with "
        "--master-port or MASTER_PORT",
        place_, brigade::detail::in_quotes(said));
  }
  [[noreturn]] void give_up(bool connected, std::chrono::milliseconds timeout) const {
    if (connected)
      throw DistError(
          "what listens at {} hangs up without a greeting, for {} ms now: it is a store that ends or has all the "
          "connections that it may, or another program uses that port",
          place_, timeout.count());
    throw TimeoutError(
        "no store answered at {} within {} ms; is rank 0 running, and are MASTER_ADDR and MASTER_PORT right?", place_,
        timeout.count());
  }

  static std::string fulfilled(std::string answer) {
    if (answer.starts_with('!')) throw DistError(answer.substr(1));
    return answer;
  }

  // A zero byte ends the key in a request.
  static const std::string& checked(const std::string& key) {
    if (key.size() > kMostKeyBytes)
      throw ValueError("store: a key has at most {} bytes, got {}", kMostKeyBytes, key.size());
    if (key.find('\0') != std::string::npos)
      throw ValueError("store: a key holds no zero byte, got one at place {}", key.find('\0'));
    return key;
  }

  std::string ask(const std::string& request) {
    std::lock_guard lock(mutex_);
    if (!socket_) throw PeerError("the connection to the store at {} was lost before", place_);
    try {
      send_string(socket_, request, in(patience_));
      return receive_string(socket_, in(patience_));
    } catch (const TimeoutError&) {
      // A late answer would be taken for the answer to the next request. Also, later requests must not wait again.
      socket_ = Socket();
      // Not a TimeoutError, which means that a rank does not arrive.
      throw PeerError(
          "the store at {} has not answered within {} ms: the process that hosts it is stopped or overloaded", place_,
          patience_.count());
    } catch (const DistError&) {
      socket_ = Socket();
      throw;
    }
  }

  std::string place_;
  std::chrono::milliseconds patience_;  // timeout for an answer
  std::string address_;
  Socket socket_;
  std::mutex mutex_;
};

}  // namespace

std::shared_ptr<Store> connect_tcp_store(const std::string& host, int port, std::chrono::milliseconds timeout,
                                         const StoreJob& job) {
  return std::make_shared<TcpStore>(host, port, timeout, job);
}

}  // namespace brigade::dist
