// How a rank left the others: a code that decides, and text for people.
#pragma once

#include <cstdint>
#include <string>

namespace brigade::dist {

struct Departure {
  enum class How : uint32_t {
    Running,          // it has not
    Left,             // its group was destroyed, or its process ended with status 0
    LeftByException,  // its group was destroyed while an exception was in flight
    Failed,           // it reported a failure; `words`: the text of its exception
    Died,             // its process ended otherwise
    GaveUp,           // it gave up waiting for others
    Unknown,          // it is gone, for an unknown reason
  };
  How how = How::Running;
  std::string words;

  bool has_ended() const noexcept { return how != How::Running; }
  bool by_exception() const noexcept { return how == How::Failed || how == How::LeftByException; }
  bool operator==(const Departure&) const = default;
};

// The text that follows "rank 1": "left the group", "failed: no label", "died (process 12 has ended)".
std::string in_words(const Departure& end);

}  // namespace brigade::dist
