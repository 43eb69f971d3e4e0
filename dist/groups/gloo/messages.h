// Messages of one of our collectives over Gloo: slot numbers that separate collectives and steps, and timed waits.
#pragma once

#include <brigade/core/error.h>

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace brigade::dist {

// The current wait of a group's thread, so that another thread can end it. When a connection breaks, Gloo wakes the
// waits on it, but not the wait for a message that was partly sent or received by then (Pair::signalException in its
// transport/tcp/pair.cc).
class Waiting {
 public:
  // Runs wait(), which waits on `buffer` for a message from or to `peer`. Throws std::runtime_error when the wait was
  // ended.
  template <class Wait>
  void on(gloo::transport::UnboundBuffer& buffer, int peer, Wait wait) {
    enter(&buffer, peer);
    const struct Leave {
      Waiting& waiting;
      ~Leave() { waiting.leave(); }
    } leave{*this};
    if (!wait()) throw std::runtime_error("a wait was ended");
  }
  // Ends the current wait and all later ones. May be called from any thread.
  void end() noexcept {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    wake();
  }
  // Ends the current wait if is_gone(peer) reports that the connection to its peer is closed. Applies only to a wait
  // that the previous call has also seen, because received data may still be on its way to the buffer.
  template <class IsGone>
  void end_if_peer_is_gone(IsGone is_gone) noexcept {
    const std::lock_guard lock(mutex_);
    const bool met_before = std::exchange(last_met_, number_) == number_;
    if (buffer_ && met_before && is_gone(peer_)) wake();
  }

 private:
  void enter(gloo::transport::UnboundBuffer* buffer, int peer) {
    const std::lock_guard lock(mutex_);
    if (ended_) throw std::runtime_error("the group was ended");
    buffer_ = buffer;
    peer_ = peer;
    ++number_;
  }
  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    buffer_ = nullptr;
  }
  void wake() noexcept {
    if (!buffer_) return;
    buffer_->abortWaitRecv();
    buffer_->abortWaitSend();
  }

  std::mutex mutex_;
  bool ended_ = false;
  gloo::transport::UnboundBuffer* buffer_ = nullptr;
  int peer_ = 0;
  uint64_t number_ = 0;  // of the wait
  uint64_t last_met_ = 0;
};

// Bytes per message of a long tensor: large enough to amortize system calls.
inline constexpr size_t kPieceBytes = 512 << 10;

struct Messages {
  gloo::Context& context;
  Waiting& waiting;
  uint64_t number;  // the collective's number, the same on all ranks
  std::chrono::milliseconds timeout;
  // Digest of the collective's metadata; 0: not known. It is part of the slot, so that ranks in different collectives
  // do not receive each other's data before the neighbor check reports the mismatch: Gloo terminates the process on a
  // message that is too long.
  uint64_t digest = 0;

  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;
  Buffer buffer(void* data, size_t bytes) const { return context.createUnboundBuffer(data, bytes); }

  // The slot of a message: unique between two ranks.
  enum Step : uint8_t { kDigest = 0xB1, kPart, kSum, kPartialSum, kResult, kBroadcast, kGather, kMeet };
  // `message`: below 2^24.
  uint64_t slot(Step step, uint32_t message = 0) const noexcept {
    const uint64_t about = step == kDigest ? 0 : digest & 0xFFFF;
    return uint64_t{step} << 56 | (number & 0xFFFF) << 40 | about << 24 | message;
  }

  // Wait for `messages` messages of a buffer, all from or to one peer. Both throw TimeoutError, or the exceptions of
  // Gloo and Waiting.
  void wait_received(gloo::transport::UnboundBuffer& buffer, int from, size_t messages = 1) const {
    for (; messages > 0; --messages)
      wait(buffer, from, [&] { return buffer.waitRecv(timeout); });
  }
  void wait_sent(gloo::transport::UnboundBuffer& buffer, int to, size_t messages = 1) const {
    for (; messages > 0; --messages)
      wait(buffer, to, [&] { return buffer.waitSend(timeout); });
  }

 private:
  // Gloo throws the same exception type for a timeout and for a lost connection, so the clock decides.
  template <class Wait>
  void wait(gloo::transport::UnboundBuffer& buffer, int peer, Wait wait_on_buffer) const {
    const auto latest = std::chrono::steady_clock::now() + timeout;
    try {
      waiting.on(buffer, peer, wait_on_buffer);
    } catch (const std::exception& error) {
      if (std::chrono::steady_clock::now() < latest) throw;
      throw TimeoutError("{}", error.what());
    }
  }
};

}  // namespace brigade::dist
