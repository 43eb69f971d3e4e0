// How the buckets of one backward travel: each in one all-reduce, or by a communication hook, after which flags and words
// follow in a call of their own. They do so, too, if the group reduces gradients on a device.
#pragma once

#include <brigade/dist/groups/work.h>
#include <brigade/dist/reducer/buckets.h>

#include <exception>
#include <string>
#include <vector>

namespace brigade::dist {

struct Traffic {
  bool is_sent = true;       // false: a communication hook lets the gradients stay local
  uint64_t collectives = 0;  // of this rank, without those of a hook
  uint64_t by_hook = 0;
};

class Transport {
 public:
  // The first two arguments must outlive this object. Asks the hook whether backward `number` is sent.
  Transport(const ReducerSetup& setup, const Buckets& buckets, uint64_t number, SourceLocation where);

  const Traffic& traffic() const noexcept { return traffic_; }
  // Sends a bucket whose gradients, flags and words are set. May throw.
  void send(uint32_t index);
  // With a hook whose result is compared with what the meter measures on a device: whether flags and words of a sent
  // bucket still wait for that; sends them.
  bool words_wait(uint32_t index) const;
  void send_words(uint32_t index);
  // Whether flags and words have a collective of their own, which may be read before the gradients.
  bool has_words_apart(uint32_t index) const;
  // Whether gradients, flags and words have arrived.
  bool is_completed(uint32_t index) const;
  // Waits for the gradients. Throws what the group or the hook throws.
  void wait(uint32_t index);
  // The collective that brings flags and words; that which brings the gradients, until release().
  Work& words(uint32_t index) const { return *(sent_[index].words ? sent_[index].words : sent_[index].gradients); }
  const WorkPtr& gradients(uint32_t index) const { return sent_[index].gradients; }
  void release(uint32_t index) { sent_[index] = {}; }
  // "bucket 2 of DDP(Net)"
  std::string describe(uint32_t index) const;

 private:
  struct Sent {
    WorkPtr gradients;
    WorkPtr words;  // if they are sent separately
  };
  bool compares_hook(uint32_t index) const;
  void run_hook(uint32_t index, const CollectiveOptions& options);
  // It is unknown which of its collectives a hook that threw has posted, and the peers would wait for the others.
  void abort_after(uint32_t index, const std::exception& error) const;
  GradBucket as_grad_bucket(uint32_t index) const;
  Topic topic_of(uint32_t index) const;

  const ReducerSetup& setup_;
  const Buckets& buckets_;
  uint64_t number_;
  SourceLocation where_;
  Traffic traffic_;
  std::vector<Sent> sent_;  // per bucket
};

}  // namespace brigade::dist
