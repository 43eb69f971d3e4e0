// Options of a wrapper: what they accept, and that the ranks agree on them.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <cmath>
#include <limits>

namespace brigade::test {

using namespace mechanisms;  // NOLINT: the cases are about this network

namespace {

std::string check_caps(const dist::ProcessGroupPtr& group) {
  const auto buckets = [&](double cap, double first) {
    Net net;
    return Ddp(net, group, {.bucket_cap_mb = cap, .first_bucket_mb = first}).reducer().layout().size();
  };
  for (const double cap : {double{INFINITY}, 1e300, 1e13, 25.0}) {
    if (const size_t found = buckets(cap, cap); found != 1) return fmt::format("{} buckets with {} MiB", found, cap);
  }
  if (const size_t found = buckets(INFINITY, 1e-6); found != 2)
    return fmt::format("{} buckets after a small one", found);
  if (const size_t found = buckets(1e-300, 1e-300); found != 6) return fmt::format("{} buckets without room", found);
  for (const double cap : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const std::string wrong = expect_error<ValueError>([&] { buckets(cap, 1); }, {"bucket_cap_mb", "above 0"});
    if (!wrong.empty()) return wrong;
  }
  return "";
}
const AddRankCase add_caps("a bucket without a cap holds everything", &check_caps, everywhere({2}));

}  // namespace

}  // namespace brigade::test
