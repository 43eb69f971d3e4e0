// Lays the buckets' intervals end to end and splits them where the nodes ended.
#include <brigade/lab/bench/round_shares.h>

#include <algorithm>

namespace brigade::lab::bench {

RoundShares shares_of(const dist::RoundEvents& round) {
  constexpr double kMs = 1e-6;
  RoundShares shares;
  shares.compute_ms = static_cast<double>(round.compute_ended - round.began) * kMs;
  int64_t free_at = round.began;  // when the previous bucket is done
  int64_t last = round.compute_ended;
  int64_t on_the_way = 0;
  int64_t hidden = 0;
  for (const dist::BucketEvents& bucket : round.buckets) {
    if (bucket.finished == 0) continue;  // never sent
    const bool known = bucket.arrived > 0 && bucket.reduced > 0;
    shares.peers_known = shares.peers_known && known;
    const int64_t end = std::max(free_at, known ? bucket.reduced : bucket.finished);
    const int64_t begin = std::clamp(known ? bucket.arrived : bucket.launched, free_at, end);
    on_the_way += end - begin;
    hidden += std::max<int64_t>(0, std::min(end, round.compute_ended) - begin);
    free_at = end;
    last = std::max(last, end);
  }
  const int64_t reducing = on_the_way - hidden;
  shares.on_the_way_ms = static_cast<double>(on_the_way) * kMs;
  shares.hidden_ms = static_cast<double>(hidden) * kMs;
  shares.reducing_ms = static_cast<double>(reducing) * kMs;
  shares.waiting_ms = static_cast<double>(last - round.compute_ended - reducing) * kMs;
  shares.placing_ms = static_cast<double>(round.ended - last) * kMs;
  return shares;
}

}  // namespace brigade::lab::bench
