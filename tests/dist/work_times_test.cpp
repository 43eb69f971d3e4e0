#include "on_ranks.h"
#include "work_times_cases.h"

#include <algorithm>

using namespace brigade;

TEST_CASE("between processes a collective tells when all ranks had arrived and when it was reduced") {
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    test::check_work_times("shm", ranks, true);
  }
}

TEST_CASE(
    "Gloo can tell when all ranks had arrived when there is one peer, and says that it cannot when there are more") {
  const std::vector<std::string> backends = test::backends();
  if (std::find(backends.begin(), backends.end(), "gloo") == backends.end()) {
    MESSAGE("built without Gloo: not tested");
    return;
  }
  test::check_work_times("gloo", 1, true);
  test::check_work_times("gloo", 2, true);
  test::check_work_times("gloo", 3, false);
  test::check_work_times("hosts", 4, false);
}
