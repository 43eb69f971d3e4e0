#include "on_ranks.h"
#include "work_times_cases.h"

using namespace brigade;

TEST_CASE("between threads a collective tells when all ranks had arrived and when it was reduced") {
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    test::check_work_times("threads", ranks, true);
  }
}
