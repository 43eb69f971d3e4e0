// A small key-value store through which ranks find each other before they can communicate directly.
#pragma once

#include <brigade/core/error.h>

#include <chrono>
#include <memory>
#include <string>

namespace brigade::dist {

// The longest value that a TCP store accepts: rendezvous values are short, and the store keeps them all in memory.
constexpr size_t kMostStoreValueBytes = 64 << 20;

class Store {
 public:
  virtual ~Store() = default;
  // Throws ValueError, before anything is sent, when the value is too long for a TCP store.
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until the key is set. Throws TimeoutError that names the key.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
  // Adds to an integer key (0 when absent) and returns the sum; atomic over ranks. Throws DistError when the value is
  // not an integer, or the sum overflows 64 bits; the value is then unchanged.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  virtual bool check(const std::string& key) = 0;
  // The numeric address of this host's connection to the store, at which other ranks can be expected to reach this
  // host; "" when the store does not use the network.
  virtual std::string local_address() const { return ""; }
  // The rank whose process hosts the server; the store is lost when that process ends. -1: no rank.
  virtual int host_rank() const { return -1; }
};

// What a TCP store and its clients must agree on.
struct StoreJob {
  std::string run;     // the unique name of this run; "" when it has none
  int world_size = 0;  // 0: not known
  std::string who;     // the client's name, for messages: "rank 3"
  // The secret of the job (secret.h); both sides prove that they know it, and it is never sent. "": the job has none,
  // and only the name is checked.
  std::string secret;
};

// Limits of a TCP store for its clients, authenticated or not.
struct StoreLimits {
  size_t total_bytes = 256 << 20;  // of keys and values; the same for pending requests
  size_t keys = 1 << 20;
  size_t connections = 1 << 16;                                  // of clients that have greeted
  size_t strangers = 512;                                        // not greeted; one more closes the oldest
  std::chrono::milliseconds greeting{std::chrono::seconds(10)};  // timeout for a greeting
  std::chrono::milliseconds stall{std::chrono::seconds(30)};     // timeout within a request or an answer
};

// The server side of the TCP store: a thread in rank 0 or in the launcher, joined by the destructor.
class TcpStoreServer {
 public:
  // Port 0 picks a free port. Throws DistError when the port is in use, with the port and a remedy. A client whose run,
  // secret or world size differs from `job` is refused, with a warning on this side. A client that exceeds the limits
  // gets an error or loses its connection; other clients are unaffected.
  TcpStoreServer(const std::string& host, int port, StoreJob job = {}, const StoreLimits& limits = {});
  ~TcpStoreServer();
  // For a job whose world size becomes known later.
  void set_world_size(int world_size);
  // Whether a client that has greeted as `who` (StoreJob) is connected now. May be called from any thread.
  bool is_connected(const std::string& who) const;
  int port() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Connects (retrying until the timeout). Throws TimeoutError when no server answers, and DistError when the server is
// not a Brigade store, belongs to another job, or does not know the secret.
std::shared_ptr<Store> connect_tcp_store(const std::string& host, int port, std::chrono::milliseconds timeout,
                                         const StoreJob& job = {});
// A store in a directory on one host (or a shared file system), created if missing, for this user only; keys are files,
// written atomically. Throws DistError when the directory, or a file in it, belongs to another user, is writable by
// others, or is a link. The last of `world_size` ranks to destroy its store removes the directory. add() takes a lock;
// when another process holds it for `lock_timeout`, throws TimeoutError that names the process.
std::shared_ptr<Store> open_file_store(const std::string& directory, int world_size,
                                       std::chrono::milliseconds lock_timeout = std::chrono::seconds(30));

}  // namespace brigade::dist
