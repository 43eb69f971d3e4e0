// Cases of DistributedDataParallel that hold for every backend; run by ddp_test.cpp and, on threads alone, by
// ddp_threads_test.cpp.
#pragma once

#include <string>

namespace brigade::test {

void check_same_as_one_process(const std::string& backend, int ranks);
void check_unused_on_one_rank(const std::string& backend, int ranks, double bucket_mb);
void check_loss_reaches_nothing(const std::string& backend, int ranks);
void check_failure_in_backward(const std::string& backend, int ranks);
void check_find_unused(const std::string& backend, int ranks);
void check_no_sync(const std::string& backend, int ranks);
void check_models_differ(const std::string& backend, int ranks);

}  // namespace brigade::test
