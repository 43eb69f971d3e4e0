// Recipes: what `brigade train NAME` and `brigade explain NAME` run on every rank. Each lives in a
// file of its own and makes itself known by a static object.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace brigade::lab {

struct TrainOptions {
  std::string strategy = "ddp";
  std::string precision = "32-true";  // as find_precision takes it
  std::string device = "cpu";         // as choose_device takes it
  int epochs = 20;
  int64_t global_batch = 64;  // over all ranks
  double lr = 0.05;
  uint64_t seed = 1;
  bool progress = true;
  int trace_steps = 0;     // how many of the last steps TrainResult::trace is to show
  std::string checkpoint;  // file that is written after each epoch; "": none
  std::string resume;      // such a file, to go on from bit for bit; "": from the start
};

struct TrainResult {
  int from_epoch = 0;                     // of the file that was resumed
  std::vector<double> loss;               // per step since then, mean over ranks
  std::string device;                     // of rank 0: "cpu", "cuda:0"
  std::map<std::string, double> metrics;  // "accuracy": on held-out examples
  bool parameters_equal = false;          // all ranks hold the same bits
  double seconds = 0;                     // training alone
  std::vector<double> step_ms;
  std::string trace;  // dist::trace_json of the last trace_steps steps; empty for 0
};

struct Recipe {
  std::string name;  // "digits"
  // On one rank; the result is the same on every rank. Throws ValueError for options that do not
  // fit the recipe, DeviceError for a device that is not there.
  std::function<TrainResult(const dist::ProcessGroupPtr& group, const TrainOptions& options)> train;
  // A few steps under buckets of at most `bucket_mb` MiB; gives the trace of the last
  // (docs/trace.md).
  std::function<std::string(const dist::ProcessGroupPtr& group, double bucket_mb)> trace;
  // "held-out accuracy 97.49 %"
  std::function<std::string(const TrainResult& result)> metrics_in_words;
};

struct AddRecipe {
  explicit AddRecipe(Recipe recipe);
};

bool is_recipe(const std::string& name);
// Throws ValueError that names the known ones.
const Recipe& find_recipe(const std::string& name);
// "cnn, digits"
std::string recipe_names();

}  // namespace brigade::lab
