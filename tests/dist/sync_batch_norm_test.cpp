#include "on_ranks.h"
#include "sync_batch_norm_cases.h"

using namespace brigade;

TEST_CASE("between processes: SyncBatchNorm equals BatchNorm on the whole batch, with unequal and empty batches") {
  test::on_processes(&test::check_sync_statistics);
}

TEST_CASE("between processes: SyncBatchNorm in a network: five steps equal those of one process on the whole batch") {
  test::on_processes(&test::check_sync_training);
}

TEST_CASE("between processes: SyncBatchNorm: too few values, evaluation alone, a rank that is elsewhere") {
  test::on_processes(&test::check_sync_refusals);
}
