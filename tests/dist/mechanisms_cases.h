// Every mechanism of DDP against one process on the whole batch, or against the semantics that it states.
#pragma once

#include <string>

namespace brigade::test {

// Each runs on `ranks` ranks of `backend` and checks with doctest.
void check_options_equal_one_process(const std::string& backend, int ranks);  // caps, views, static_graph, delay, ...
void check_accumulation(const std::string& backend, int ranks);               // no_sync, several backwards
void check_join(const std::string& backend, int ranks);
void check_optimizer_in_backward(const std::string& backend, int ranks);
void check_verify_consistency(const std::string& backend, int ranks);
void check_logging_data(const std::string& backend, int ranks);
// comm_hooks_cases.cpp
void check_hooks(const std::string& backend, int ranks);  // communication hooks
void check_local_sgd_and_averaging(const std::string& backend, int ranks);
// unusual_models_cases.cpp
void check_several_wrappers(const std::string& backend, int ranks);  // GAN, two modules in one loss
void check_unusual_models(const std::string& backend, int ranks);    // shared, mixed dtypes, frozen, checkpoint
void check_embedding(const std::string& backend, int ranks);
void check_cut_inside_checkpoint(const std::string& backend, int ranks);

}  // namespace brigade::test
