// Training jobs as rank jobs, for the commands `train` and `demo`.
#pragma once

#include <brigade/lab/rank_job.h>
#include <brigade/lab/recipes/recipe.h>
#include <brigade/lab/results.h>

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <string>

namespace brigade::lab {

// The ranks on which a job runs.
struct TrainRanks {
  std::string backend = "shm";
  int ranks = 2;
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
};

// Trains on `ranks` ranks and returns rank 0's result. Throws like require_ok().
TrainResult run_recipe(const Recipe& recipe, const std::string& backend, int ranks, const TrainOptions& options,
                       std::chrono::milliseconds timeout = std::chrono::seconds(30));

// How a run of a form ended.
struct FormOutcome {
  TrainResult result;            // of rank 0, if the run completed
  RankResult error;              // of the first rank that failed
  bool expected = false;         // ended as the form says: with its verdict, or with equal replicas
  std::string in_words() const;  // the error: "unused_parameters (detached)"
};
// Throws ValueError, IoError and DeviceError like require_ok(): these are not outcomes of the form.
FormOutcome run_form(const Recipe& recipe, const Form& form, const TrainRanks& ranks, TrainOptions options);

// The input of rank processes: the name of the job, and its arguments.
inline constexpr const char* kTrainJob = "train";
std::string train_arguments(const Recipe& recipe, const TrainOptions& options);
// Parses the result of such a job.
TrainResult parse_train_result(const std::string& text);

// A row of "results" (docs/cli.md).
nlohmann::json train_row(const Recipe& recipe, int ranks, const std::string& backend, const TrainOptions& options,
                         const TrainResult& result);

// `brigade train --list`: recipes, and under each its forms.
void list_recipes(Results& results);
// `brigade train RECIPE --compare`: runs all forms in order and prints a table. Returns whether all ended as they
// should.
bool compare_forms(const Recipe& recipe, const TrainRanks& ranks, const TrainOptions& options, Results& results);

}  // namespace brigade::lab
