// The messages of one collective of ours over Gloo: what keeps those of different collectives and
// steps apart, and how long each is waited for.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>

namespace brigade::dist {

// What the thread of a group waits for, so that another one can end it. Gloo wakes who waits on a
// connection that breaks, but not always one who came while it broke.
class Waiting {
 public:
  // wait() waits on this buffer. Throws std::runtime_error when it was ended.
  template <class Wait>
  void on(gloo::transport::UnboundBuffer& buffer, Wait wait) {
    enter(&buffer);
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
    if (!buffer_) return;
    buffer_->abortWaitRecv();
    buffer_->abortWaitSend();
  }

 private:
  void enter(gloo::transport::UnboundBuffer* buffer) {
    const std::lock_guard lock(mutex_);
    if (ended_) throw std::runtime_error("the group was ended");
    buffer_ = buffer;
  }
  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    buffer_ = nullptr;
  }

  std::mutex mutex_;
  bool ended_ = false;
  gloo::transport::UnboundBuffer* buffer_ = nullptr;
};

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

  // What a message is sent and received under: unique between two ranks. Gloo's own collectives
  // have other first bytes.
  enum Step : uint8_t { kDigest = 0xB1, kPart, kSum, kPartialSum, kResult };
  // `message`: below 2^24.
  uint64_t slot(Step step, uint32_t message = 0) const noexcept {
    const uint64_t about = step == kDigest ? 0 : digest & 0xFFFF;
    return uint64_t{step} << 56 | (number & 0xFFFF) << 40 | about << 24 | message;
  }

  void wait_received(gloo::transport::UnboundBuffer& buffer, size_t messages = 1) const {
    for (; messages > 0; --messages)
      waiting.on(buffer, [&] { return buffer.waitRecv(timeout); });
  }
  void wait_sent(gloo::transport::UnboundBuffer& buffer, size_t messages = 1) const {
    for (; messages > 0; --messages)
      waiting.on(buffer, [&] { return buffer.waitSend(timeout); });
  }
};

}  // namespace brigade::dist
