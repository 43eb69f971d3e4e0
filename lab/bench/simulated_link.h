// A simulated link of chosen latency and bandwidth between ranks of one machine, which takes no CPU time, like a
// network card. On a machine with as many busy ranks as cores, a real transport needs the cores that compute, so
// none of it can be hidden; transfers over the simulated link can be hidden, and how much of them is known in
// advance.
//
// The link carries one collective at a time, in the order in which they were posted. Each begins when all ranks
// have posted it and the previous one has ended, and takes latency + bytes / bandwidth. WorkTimes::reduced is its
// end. A rank that waits for it sleeps.
//
// The values travel through another group (threads or shm), whose ranks reduce them in memory when they poll or
// wait for the collective. This takes the ranks' time, as any copy does, but no link time; a collective is not
// complete before it.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace brigade::lab::bench {

struct LinkSpeed {
  double latency_us = 0;
  double GBps = std::numeric_limits<double>::infinity();  // 10^9 bytes a second

  // The duration of a collective. `bytes` is the size of the tensor, of the larger one for all_gather and
  // reduce_scatter.
  int64_t nanoseconds(int64_t bytes) const noexcept;
};

// "20us,10GB/s"; "0us,1.25GB/s". Throws ValueError for another form, a negative latency, or a bandwidth not above
// 0.
LinkSpeed parse_link(const std::string& text);
std::string in_words(const LinkSpeed& speed);
// Throws ValueError for a backend that does not support a simulated link.
void check_carries_link(const std::vector<std::string>& backends);

// Computes when the collectives that share a link end. Times are nanoseconds of one clock.
class LinkSchedule {
 public:
  explicit LinkSchedule(const LinkSpeed& speed) : speed_(speed) {}
  // Schedules the next collective, which all ranks had posted at `arrived`. Returns its end.
  int64_t transfer(int64_t arrived, int64_t bytes) noexcept;

 private:
  LinkSpeed speed_;
  int64_t free_at_ = 0;
};

// Wraps this rank's group in such a link; the peers must use the same speed. A barrier takes the time of the inner
// group's. Throws ValueError unless the inner group is threads or shm: only these know exactly, and equally on all
// ranks, when all ranks have posted a collective.
dist::ProcessGroupPtr over_link(dist::ProcessGroupPtr inner, const LinkSpeed& speed);

}  // namespace brigade::lab::bench
