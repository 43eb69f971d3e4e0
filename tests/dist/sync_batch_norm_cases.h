// Cases of SyncBatchNorm that hold for every backend; run by sync_batch_norm_test.cpp and, on threads alone, by
// sync_batch_norm_threads_test.cpp.
#pragma once

#include <string>

namespace brigade::test {

void check_sync_statistics(const std::string& backend, int ranks);
void check_sync_training(const std::string& backend, int ranks);
void check_sync_refusals(const std::string& backend, int ranks);

}  // namespace brigade::test
