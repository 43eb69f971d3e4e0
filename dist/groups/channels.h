// The channels of a rank: groups of two, each for the messages of one sender, receiver and tag.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace brigade::dist {

class Channels {
 public:
  // Of this rank in `group`, which outlives them.
  explicit Channels(ProcessGroup& group);
  // What is not complete ends with an error. Waits for a channel that is being made, at most the group's timeout.
  ~Channels();
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  // One of `src` and `dst` is this rank, and the other is not.
  WorkPtr post(const Tensor& tensor, int src, int dst, int tag, SourceLocation where);

 private:
  class Channel;

  ProcessGroup& group_;
  std::mutex mutex_;
  std::map<std::tuple<int, int, int>, std::unique_ptr<Channel>> channels_;  // by sender, receiver, tag
};

}  // namespace brigade::dist
