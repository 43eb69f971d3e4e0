// A small key-value store in which ranks find each other before they can talk directly.
#pragma once

#include <brigade/core/error.h>

#include <chrono>
#include <memory>
#include <string>

namespace brigade::dist {

// The longest value that a TCP store takes: what ranks tell each other to meet is short, and the
// store keeps it all in memory.
constexpr size_t kMostStoreValueBytes = 64 << 20;

class Store {
 public:
  virtual ~Store() = default;
  // Throws ValueError, before anything is sent, when a TCP store would not take that much.
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until the key is there. Throws TimeoutError that names the key.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
  // Adds to an integer key (0 when absent) and returns the sum; atomic over ranks. Throws DistError
  // when the value is not a whole number, or the sum leaves 64 bits; the value stays as it is.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  virtual bool check(const std::string& key) = 0;
  // The numeric address of this host on its way to the store, at which ranks that reach the store
  // can be expected to reach this host; "" when the store is no matter of a network.
  virtual std::string local_address() const { return ""; }
  // The rank of the job in whose process the server is: the store goes with it. -1: no rank's.
  virtual int host_rank() const { return -1; }
};

// What a TCP store and those who come to it must agree on.
struct StoreJob {
  std::string run;     // the name of this run, which other runs have not; "" when nobody gave one
  int world_size = 0;  // 0: not known
  std::string who;     // who comes, for messages: "rank 3"
  // What all of the job know and nobody else (secret.h); both sides prove that they do, and it is
  // never sent. "": the job has none, and its name is all that it asks for.
  std::string secret;
};

// What a TCP store gives to those who come to it, known or not, at most.
struct StoreLimits {
  size_t total_bytes = 256 << 20;  // of keys and values; as many of requests under way
  size_t keys = 1 << 20;
  size_t connections = 1 << 16;                                  // of those who have greeted
  size_t strangers = 512;                                        // who have not: one more ends the oldest
  std::chrono::milliseconds greeting{std::chrono::seconds(10)};  // for a stranger to greet
  std::chrono::milliseconds stall{std::chrono::seconds(30)};     // in the middle of a request or an answer
};

// The server side of the TCP store: a thread in rank 0 or in the launcher. Ends with the object.
class TcpStoreServer {
 public:
  // Port 0 picks a free one. Throws DistError when the port is in use: names the port and what to
  // do. Whoever comes with another run, secret or world size than `job` says is refused, and a
  // warning tells it on this side. Whoever passes the limits gets an error or loses its connection; the
  // others go on.
  TcpStoreServer(const std::string& host, int port, StoreJob job = {}, const StoreLimits& limits = {});
  ~TcpStoreServer();
  // For a job that learns it late.
  void set_world_size(int world_size);
  // Whether somebody who has greeted as `who` (StoreJob) is connected now. From any thread.
  bool is_connected(const std::string& who) const;
  int port() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Connects (retrying until the timeout). Throws TimeoutError when nobody answers and DistError when
// whatever answers is not a Brigade store, is that of another job, or does not know its secret.
std::shared_ptr<Store> connect_tcp_store(const std::string& host, int port, std::chrono::milliseconds timeout,
                                         const StoreJob& job = {});
// A directory on one host (or a shared file system), created if it is missing, for this user alone;
// keys are files, written atomically. Throws DistError where it, or a file in it, belongs to another
// user, where others may write to it, or where it is a link. The last of `world_size` ranks to
// destroy its store removes it. Sums are made under a lock; one that another process holds for
// `lock_timeout` is a TimeoutError that names the process.
std::shared_ptr<Store> open_file_store(const std::string& directory, int world_size,
                                       std::chrono::milliseconds lock_timeout = std::chrono::seconds(30));

}  // namespace brigade::dist
