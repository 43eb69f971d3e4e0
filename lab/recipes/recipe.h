// Recipes: what `brigade train NAME` and `brigade explain NAME` run on every rank. Each lives in a
// file of its own and makes itself known by a static object.
//
// A recipe may have forms: ways to write the same training, right ones and ones that people write
// and that fail. `brigade train NAME --form FORM` runs one, `--compare` all of them.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace brigade::lab {

struct TrainOptions {
  std::string form;  // name of one of Recipe::forms; "": the first of them
  std::string strategy = "ddp";
  std::string precision = "32-true";  // as find_precision takes it
  std::string device = "cpu";         // as choose_device takes it
  int epochs = 20;
  int64_t steps = 0;          // ends after so many, also in the middle of an epoch; 0: after `epochs`
  int64_t global_batch = 64;  // over all ranks
  double lr = 0.05;
  uint64_t seed = 1;
  bool progress = true;
  int trace_steps = 0;     // how many of the last steps TrainResult::trace is to show
  double bucket_mb = 0;    // cap of the buckets in MiB; 0: DDP's own
  std::string checkpoint;  // file that is written after each epoch; "": none
  int64_t save_every = 0;  // steps after which it is written within an epoch too; 0: it is not
  std::string resume;      // such a file, to go on from bit for bit; "": from the start
  std::string metrics;     // file that gets a line of JSON for each step (StepLog); "": none
  std::string data;        // folder of images, where the recipe takes one; "": those that come with the program
  int64_t width = 0;       // channels of the first stage, where the recipe takes it; 0: its own
  std::string picture;     // PNG that shows what was learned, where the recipe makes pictures; "": none
};

struct TrainResult {
  int from_epoch = 0;        // of the file that was resumed
  std::vector<double> loss;  // per step since then, mean over ranks; of several losses the first
  std::string device;        // of rank 0: "cpu", "cuda:0"
  // What was learned, in numbers: "accuracy" of held-out examples. The same bits in every run, and after a resumed one.
  std::map<std::string, double> metrics;
  // Kinds of warnings that the wrapper has given in this run, "gradients_accumulate". Some depend on how quick the ranks
  // were (slow_rank), and a resumed run does not repeat those of the steps before it.
  std::set<std::string> warnings;
  bool parameters_equal = false;  // all ranks hold the same bits
  bool gradients_equal = false;   // the same of the gradients of the last step
  double seconds = 0;             // training alone
  std::vector<double> step_ms;
  double collectives_per_step = 0;  // of the group, without those of the report
  double bytes_per_step = 0;        // that a rank gave to them; -1: not known
  double peak_bytes = 0;            // of memory for tensors, in the process of rank 0
  std::string trace;                // dist::trace_json of the last trace_steps steps; empty for 0
  std::string sample;               // what the trained model has written, to be printed; "": nothing
};

// How a run ends that has to fail: kind and cause of the verdict (docs/reference/verdicts.md); "error" and ""
// for an error of the loss scaler.
struct ExpectedVerdict {
  std::string kind;   // "unused_parameters"; "": none, the run is right
  std::string cause;  // "detached"
};

struct Form {
  std::string name;   // "find-unused"
  std::string about;  // one line
  ExpectedVerdict verdict = {};
  // The planted fault or control that is the same in small ("UNU-12"); "": none.
  std::string fault = {};
  int64_t shows_in = 3;  // steps after which a verdict has come for certain
  // Kind of a warning that a right run gives ("buffers_differ"); "": none.
  std::string warning = {};

  bool is_right() const noexcept { return verdict.kind.empty(); }
};

struct Recipe {
  std::string name;   // "digits"
  std::string about;  // one line
  // The first is right, and is what runs when none is named. None: a recipe has one form, "default".
  std::vector<Form> forms = {};
  // What is taken for options that are not given: epochs, global_batch, lr, precision, save_every.
  TrainOptions defaults = {};
  bool makes_pictures = false;
  bool takes_images = false;  // TrainOptions::data and width
  // On one rank; the result is the same on every rank. Throws ValueError for options that do not
  // fit the recipe, DeviceError for a device that is not there, and what a form raises that fails.
  std::function<TrainResult(const dist::ProcessGroupPtr& group, const TrainOptions& options)> train;
  // A few steps under buckets of at most `bucket_mb` MiB; gives the trace of the last
  // (docs/trace.md). Empty: the first steps of `train`.
  std::function<std::string(const dist::ProcessGroupPtr& group, double bucket_mb)> trace = {};
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
// In the order of their names.
std::vector<const Recipe*> all_recipes();

// The form of this name; the first for "". Throws ValueError that names the known ones.
const Form& find_form(const Recipe& recipe, const std::string& name);
// "wrapped-once, two-wrappers"
std::string form_names(const Recipe& recipe);

// See Recipe::trace.
std::string short_trace(const Recipe& recipe, const dist::ProcessGroupPtr& group, double bucket_mb);

}  // namespace brigade::lab
