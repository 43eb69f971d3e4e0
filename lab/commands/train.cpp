// brigade train: one training job.
#include <brigade/lab/commands/train.h>

#include <brigade/core/atomic_file.h>
#include <brigade/core/device_runtime.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/options.h>
#include <brigade/lab/precision.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/results.h>
#include <brigade/lab/strategy.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace brigade::lab {

// How options and results travel between processes.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainOptions, strategy, precision, device, epochs, global_batch, lr, seed, progress,
                                   trace_steps, checkpoint, resume)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainResult, from_epoch, loss, device, metrics, parameters_equal, seconds, step_ms,
                                   trace)

namespace {

using nlohmann::json;

std::string train_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  const json given = json::parse(arguments);
  TrainResult result = find_recipe(given.at("recipe")).train(group, given.at("options").get<TrainOptions>());
  if (group->rank() != 0) result.trace.clear();
  return json(result).dump();
}

constexpr const char* kTrainJob = "train";
const AddRankJob add_train_job(kTrainJob, &train_job);

std::string arguments_of(const Recipe& recipe, const TrainOptions& options) {
  return json{{"recipe", recipe.name}, {"options", options}}.dump();
}

}  // namespace

TrainResult run_recipe(const Recipe& recipe, const std::string& backend, int ranks, const TrainOptions& options,
                       std::chrono::milliseconds timeout) {
  const RankJobOutcome outcome = run_rank_job(kTrainJob, arguments_of(recipe, options), backend, ranks, timeout);
  require_ok(outcome);
  return json::parse(outcome.ranks.at(0).text).get<TrainResult>();
}

json train_row(const Recipe& recipe, int ranks, const std::string& backend, const TrainOptions& options,
               const TrainResult& result) {
  return {{"recipe", recipe.name},
          {"form", "default"},
          {"ranks", ranks},
          {"backend", backend},
          {"device", result.device},
          {"strategy", options.strategy},
          {"precision", options.precision},
          {"epochs", options.epochs},
          {"from_epoch", result.from_epoch},
          {"loss", result.loss},
          {"metrics", result.metrics},
          {"seconds", result.seconds},
          {"step_ms", statistics(result.step_ms)},
          {"parameters_equal", result.parameters_equal}};
}

void add_train(Command& app) {
  struct Arguments {
    std::string recipe;
    std::string backend = "shm";
    int ranks = 2;
    double timeout_s = 30;
    TrainOptions options;
    bool quiet = false;
    std::string trace_file;
    Results results;
  };
  auto given = std::make_shared<Arguments>();
  Command train = app.add_command("train", "Run one training job");
  train.footer(
      "Examples:\n  brigade train digits --ranks 2\n  brigade train digits --ranks 4 --backend gloo --strategy "
      "ddp_find_unused_parameters_true --epochs 3 --json -\n  brigade train digits --epochs 1 --trace trace.json\n  "
      "brigade train digits --epochs 5 --checkpoint digits.ckpt\n  brigade train digits --epochs 10 --resume digits.ckpt\n  "
      "brigade run -n 2 --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 --master-port 29500 -- brigade train "
      "digits\nUnder brigade run, torchrun, mpirun or srun each process is one rank: --ranks is theirs to say, the "
      "backend is auto unless given, and rank 0 reports.");
  train.add_option("recipe", given->recipe, "what to train: " + recipe_names()).required();
  const Option ranks =
      train.add_option("--ranks", given->ranks, "number of ranks").check(number_from(1, 64)).show_default();
  const Option backend = train.add_option("--backend", given->backend, backends_in_words()).show_default();
  train.add_option("--timeout", given->timeout_s, "seconds that a collective may take")
      .check(number_from(0.1, 86400.0))
      .show_default();
  train.add_option("--strategy", given->options.strategy, "ddp or ddp_find_unused_parameters_true").show_default();
  train.add_option("--precision", given->options.precision, precision_names()).show_default();
  train
      .add_option("--device", given->options.device,
                  "cpu, cuda (the ranks take turns over the GPUs), cuda:N, or auto: cuda where there is one")
      .show_default();
  train.add_option("--epochs", given->options.epochs, "passes over the data").check(number_from(1)).show_default();
  train.add_option("--batch", given->options.global_batch, "examples per step, over all ranks")
      .check(number_from(1))
      .show_default();
  train.add_option("--lr", given->options.lr, "learning rate").check(number_from(0, 1e6)).show_default();
  train.add_option("--seed", given->options.seed, "seed of the model and of the order of examples")
      .check(number_from(0))
      .show_default();
  train.add_option("--checkpoint", given->options.checkpoint, "write all that training goes on from, after each epoch");
  train.add_option(
      "--resume", given->options.resume,
      "go on from such a file, bit for bit, until --epochs (with the same --seed, --batch and --precision)");
  train.add_flag("--quiet", given->quiet, "no progress bar");
  train.add_option("--trace", given->trace_file,
                   "write a trace of the last 8 steps of all ranks to a file, for `brigade explain` and Perfetto");
  given->results.add_json_option(train);
  train.action([given, ranks, backend] {
    // Wrong names are told before any rank starts.
    const Recipe& recipe = find_recipe(given->recipe);
    strategy_options(given->options.strategy);
    check_backend(given->backend);
    static_cast<void>(find_precision(given->options.precision));
    choose_device(given->options.device);
    const int launched = launched_ranks();
    if (launched > 0 && ranks.is_given() && given->ranks != launched)
      throw ValueError("--ranks {}, but the launcher has started {} ranks; leave it out", given->ranks, launched);
    if (launched > 0) given->ranks = launched;
    if (given->options.global_batch % given->ranks != 0)
      throw ValueError("the global batch of {} cannot be shared evenly by {} ranks", given->options.global_batch,
                       given->ranks);
    const auto timeout = std::chrono::milliseconds(static_cast<int64_t>(given->timeout_s * 1000));
    given->options.progress = !given->quiet;
    given->options.trace_steps = given->trace_file.empty() ? 0 : 8;
    check_output(given->trace_file);
    check_output(given->options.checkpoint);
    given->results.begin();
    TrainResult result;
    if (launched > 0) {
      const JoinedJob joined = join_rank_job(kTrainJob, arguments_of(recipe, given->options),
                                             backend.is_given() ? given->backend : "auto", timeout);
      require_ok(joined);
      result = json::parse(joined.result.text).get<TrainResult>();
      if (joined.rank != 0) return result.parameters_equal ? 0 : 1;
      given->backend = joined.backend;
    } else {
      result = run_recipe(recipe, given->backend, given->ranks, given->options, timeout);
    }
    std::cout << fmt::format(
        "{} on {} ranks ({}, {}): loss {:.4f} -> {:.4f} in {} steps, {}, {:.2f} s, parameters {} on all ranks\n",
        recipe.name, given->ranks, given->backend, result.device, result.loss.front(), result.loss.back(),
        result.loss.size(), recipe.metrics_in_words(result), result.seconds,
        result.parameters_equal ? "identical" : "DIFFERENT");
    if (!given->trace_file.empty()) write_file(given->trace_file, result.trace);
    given->results.add(train_row(recipe, given->ranks, given->backend, given->options, result));
    given->results.write();
    return result.parameters_equal ? 0 : 1;
  });
}

}  // namespace brigade::lab
