// The messages of one collective of ours over Gloo: what keeps those of different collectives and
// steps apart, and how long each is waited for.
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

// What the thread of a group waits for, so that another one can end it. Gloo wakes who waits on a connection that breaks, but
// not who waits for a message that was half sent or half received by then (Pair::signalException in its
// transport/tcp/pair.cc).
class Waiting {
 public:
  // wait() waits on this buffer for a message from or to `peer`. Throws std::runtime_error when it was ended.
  template <class Wait>
  void on(gloo::transport::UnboundBuffer& buffer, int peer, Wait wait) {
    enter(&buffer, peer);
    const struct Leave {
      Waiting& waiting;
      ~Leave() { waiting.leave(); }
    } leave{*this};
    if (!wait()) throw std::runtime_error("a wait was ended");
  }
  // Ends that, and what comes after. From any thread.
  void end() noexcept {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    wake();
  }
  // Ends the current wait where is_gone(peer) says that the connection to its peer is closed. Only a wait that the call
  // before has met as well: what came over that connection may still be on its way to the buffer.
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

// Of a long tensor, in each message: long enough for the system calls not to matter.
inline constexpr size_t kPieceBytes = 512 << 10;

struct Messages {
  gloo::Context& context;
  Waiting& waiting;
  uint64_t number;  // of the collective, the same on all ranks
  std::chrono::milliseconds timeout;
  // Of what the collective is about; 0: not known. Ranks that have met in different ones hear of it from their neighbours,
  // and do not take each other's data until then: Gloo ends the process of a message that is too long.
  uint64_t digest = 0;

  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;
  Buffer buffer(void* data, size_t bytes) const { return context.createUnboundBuffer(data, bytes); }

  // What a message is sent and received under: unique between two ranks.
  enum Step : uint8_t { kDigest = 0xB1, kPart, kSum, kPartialSum, kResult, kBroadcast, kGather, kMeet };
  // `message`: below 2^24.
  uint64_t slot(Step step, uint32_t message = 0) const noexcept {
    const uint64_t about = step == kDigest ? 0 : digest & 0xFFFF;
    return uint64_t{step} << 56 | (number & 0xFFFF) << 40 | about << 24 | message;
  }

  // All messages of a buffer that are waited for come from one peer, or go to one. Both throw TimeoutError, or what Gloo and
  // Waiting throw.
  void wait_received(gloo::transport::UnboundBuffer& buffer, int from, size_t messages = 1) const {
    for (; messages > 0; --messages)
      wait(buffer, from, [&] { return buffer.waitRecv(timeout); });
  }
  void wait_sent(gloo::transport::UnboundBuffer& buffer, int to, size_t messages = 1) const {
    for (; messages > 0; --messages)
      wait(buffer, to, [&] { return buffer.waitSend(timeout); });
  }

 private:
  // Gloo has one kind of error for a time-out and for a connection that is gone.
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
