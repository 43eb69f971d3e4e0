// A link of chosen latency and bandwidth between ranks of one machine, which takes no processor's
// time: what a network card would do beside the processors. On a machine with as many busy ranks
// as cores a real transport needs the cores that compute, so nothing of it can be hidden; over this
// one it can, and how much is known beforehand.
//
// The link carries one collective after the other, in the order in which they were posted; each
// begins when all ranks have posted it and the one before has ended, and takes latency + bytes /
// bandwidth. WorkTimes::reduced is that end. Who waits for it sleeps.
//
// The values travel through another group (threads or shm), whose ranks reduce them in memory when
// they look at the collective. That takes the ranks' time, as any copy does, and none of the link's;
// a collective is not complete before it.
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

  // How long a collective takes: of the tensor's bytes, for all_gather and reduce_scatter of the
  // larger one's.
  int64_t nanoseconds(int64_t bytes) const noexcept;
};

// "20us,10GB/s"; "0us,1.25GB/s". Throws ValueError for another form, a latency below 0, a bandwidth
// that is not above 0.
LinkSpeed parse_link(const std::string& text);
std::string in_words(const LinkSpeed& speed);
// Throws ValueError for a backend over which there is no such link.
void check_carries_link(const std::vector<std::string>& backends);

// When collectives end that share a link. Times are nanoseconds of one clock.
class LinkSchedule {
 public:
  explicit LinkSchedule(const LinkSpeed& speed) : speed_(speed) {}
  // The next collective: all ranks had posted it at `arrived`. Returns its end.
  int64_t transfer(int64_t arrived, int64_t bytes) noexcept;

 private:
  LinkSpeed speed_;
  int64_t free_at_ = 0;
};

// The group of this rank over such a link; the peers make theirs of the same speed. A barrier takes
// what the inner group's takes. Throws ValueError for another inner group than threads or shm: only
// these know when all ranks have posted a collective, exactly and alike on all ranks.
dist::ProcessGroupPtr over_link(dist::ProcessGroupPtr inner, const LinkSpeed& speed);

}  // namespace brigade::lab::bench
