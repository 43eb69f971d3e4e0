// The messages of one collective of ours over Gloo: what keeps those of different collectives and
// steps apart, and how long each is waited for.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>

namespace brigade::dist {

struct Messages {
  gloo::Context& context;
  uint64_t number;  // of the collective, the same on all ranks
  std::chrono::milliseconds timeout;

  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;
  Buffer buffer(void* data, size_t bytes) const { return context.createUnboundBuffer(data, bytes); }

  // What a message is sent and received under: unique between two ranks. Gloo's own collectives
  // have other first bytes.
  enum Step : uint8_t { kDigest = 0xB1, kPart, kSum, kPartialSum, kResult };
  uint64_t slot(Step step, uint32_t message = 0) const noexcept {
    return uint64_t{step} << 56 | (number & 0xFFFFFF) << 32 | message;
  }

  void wait_received(gloo::transport::UnboundBuffer& buffer, size_t messages = 1) const {
    for (; messages > 0; --messages) {
      if (!buffer.waitRecv(timeout)) throw std::runtime_error("a receive was ended");
    }
  }
  void wait_sent(gloo::transport::UnboundBuffer& buffer, size_t messages = 1) const {
    for (; messages > 0; --messages) {
      if (!buffer.waitSend(timeout)) throw std::runtime_error("a send was ended");
    }
  }
};

}  // namespace brigade::dist
