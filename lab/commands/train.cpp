// brigade train: one training job.
#include <brigade/lab/commands/train.h>

#include <brigade/amp/autocast.h>
#include <brigade/core/atomic_file.h>
#include <brigade/core/device_runtime.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/json.h>
#include <brigade/lab/options.h>
#include <brigade/lab/png.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/recipes/training.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace brigade::lab {

// Serialization of options and results between processes.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainOptions, form, strategy, precision, device, epochs, steps, global_batch, lr,
                                   seed, progress, trace_steps, bucket_mb, checkpoint, save_every, resume, metrics,
                                   data, width, picture)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainResult, from_epoch, loss, device, metrics, warnings, parameters_equal,
                                   gradients_equal, seconds, step_ms, collectives_per_step, bytes_per_step, peak_bytes,
                                   trace, sample)

namespace {

using nlohmann::json;

std::string train_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  const json given = json::parse(arguments);
  TrainResult result = find_recipe(given.at("recipe")).train(group, given.at("options").get<TrainOptions>());
  if (group->rank() != 0) result.trace.clear();
  // CBOR, because a loss may be NaN, which JSON cannot represent.
  std::string bytes;
  json::to_cbor(json(result), bytes);
  return bytes;
}

const AddRankJob add_train_job(kTrainJob, &train_job);

// Announces the expected failure of a failing form before it runs.
void announce(const Recipe& recipe, const Form& form) {
  if (form.is_right()) return;
  std::cout << fmt::format("{}, form {}: {}. It has to end in {} ({}); the same in small: brigade diagnose {}\n",
                           recipe.name, form.name, form.about, form.verdict.kind, form.verdict.cause, form.fault)
            << std::flush;
}

}  // namespace

std::string train_arguments(const Recipe& recipe, const TrainOptions& options) {
  return json{{"recipe", recipe.name}, {"options", options}}.dump();
}

TrainResult parse_train_result(const std::string& text) { return json::from_cbor(text).get<TrainResult>(); }

TrainResult run_recipe(const Recipe& recipe, const std::string& backend, int ranks, const TrainOptions& options,
                       std::chrono::milliseconds timeout) {
  const RankJobOutcome outcome = run_rank_job(kTrainJob, train_arguments(recipe, options), backend, ranks, timeout);
  require_ok(outcome);
  return parse_train_result(outcome.ranks.at(0).text);
}

FormOutcome run_form(const Recipe& recipe, const Form& form, const TrainRanks& ranks, TrainOptions options) {
  options.form = form.name;
  const RankJobOutcome outcome =
      run_rank_job(kTrainJob, train_arguments(recipe, options), ranks.backend, ranks.ranks, ranks.timeout);
  FormOutcome found;
  const int failed = first_failed(outcome);
  if (failed < 0) {
    found.error.ok = true;
    found.result = parse_train_result(outcome.ranks.at(0).text);
    found.expected = form.is_right() && found.result.parameters_equal && found.result.gradients_equal &&
                     (form.warning.empty() || found.result.warnings.contains(form.warning));
    return found;
  }
  found.error = outcome.ranks[static_cast<size_t>(failed)];
  if (found.error.verdict.empty()) require_ok(outcome);
  found.expected = found.error.verdict == form.verdict.kind && found.error.cause == form.verdict.cause;
  return found;
}

json train_row(const Recipe& recipe, int ranks, const std::string& backend, const TrainOptions& options,
               const TrainResult& result) {
  json row{{"recipe", recipe.name},
           {"form", find_form(recipe, options.form).name},
           {"ranks", ranks},
           {"backend", backend},
           {"device", result.device},
           {"strategy", options.strategy},
           {"precision", options.precision},
           {"epochs", options.epochs},
           {"from_epoch", result.from_epoch},
           {"loss", result.loss},
           {"metrics", result.metrics},
           {"warnings", result.warnings},
           {"seconds", result.seconds},
           {"step_ms", statistics(result.step_ms)},
           {"collectives_per_step", result.collectives_per_step},
           {"bytes_per_step", result.bytes_per_step},
           {"peak_bytes", result.peak_bytes},
           {"gradients_equal", result.gradients_equal},
           {"parameters_equal", result.parameters_equal}};
  if (!result.sample.empty()) row["sample"] = result.sample;
  return row;
}

namespace {

struct Arguments {
  std::string recipe;
  TrainRanks where;
  double timeout_s = 30;
  TrainOptions options;
  bool list = false, compare = false, quiet = false;
  std::string trace_file;
  Results results;
};

// Options for which it matters whether the user gave them.
struct Given {
  Option ranks, backend, timeout, precision, epochs, batch, lr, save_every;
};

// Each form would overwrite the files of the previous one.
void check_compare(const Arguments& given) {
  const std::pair<const char*, const std::string*> files[] = {{"--checkpoint", &given.options.checkpoint},
                                                              {"--resume", &given.options.resume},
                                                              {"--metrics", &given.options.metrics},
                                                              {"--picture", &given.options.picture},
                                                              {"--trace", &given.trace_file}};
  for (const auto& [option, file] : files) {
    if (!file->empty())
      throw ValueError("--compare runs all forms, and {} is for one; leave it out, or choose a --form", option);
  }
}

// Reports wrong names before any rank starts.
void check(Arguments& given, const Recipe& recipe, const Given& by_user) {
  static_cast<void>(find_form(recipe, given.options.form));
  if (given.compare) check_compare(given);
  strategy_options(given.options.strategy);
  check_backend(given.where.backend);
  if (!by_user.precision.is_given()) given.options.precision = recipe.defaults.precision;
  static_cast<void>(amp::find_precision(given.options.precision));
  choose_device(given.options.device);
  const int launched = launched_ranks();
  if (launched > 0 && by_user.ranks.is_given() && given.where.ranks != launched)
    throw ValueError("--ranks {}, but the launcher has started {} ranks; leave it out", given.where.ranks, launched);
  if (launched > 0) given.where.ranks = launched;
  if (!by_user.epochs.is_given()) given.options.epochs = recipe.defaults.epochs;
  if (!by_user.batch.is_given()) given.options.global_batch = recipe.defaults.global_batch;
  if (!by_user.lr.is_given()) given.options.lr = recipe.defaults.lr;
  if (!by_user.save_every.is_given()) given.options.save_every = recipe.defaults.save_every;
  if (given.options.global_batch % given.where.ranks != 0)
    throw ValueError("the global batch of {} cannot be shared evenly by {} ranks", given.options.global_batch,
                     given.where.ranks);
  if (!given.options.picture.empty() && !recipe.makes_pictures)
    throw ValueError("the recipe {} makes no pictures; leave out --picture", recipe.name);
  if (!given.options.picture.empty()) require_png();
  if (!recipe.takes_images && (!given.options.data.empty() || given.options.width > 0))
    throw ValueError("the recipe {} has images and a width of its own; leave out --data and --width", recipe.name);
  if (by_user.save_every.is_given() && given.options.checkpoint.empty())
    throw ValueError("--save-every says when --checkpoint FILE is written; name that file");
  for (const std::string* file :
       {&given.trace_file, &given.options.checkpoint, &given.options.metrics, &given.options.picture})
    check_output(*file);
  given.where.timeout = collective_timeout();
  if (by_user.timeout.is_given())
    given.where.timeout = std::chrono::milliseconds(static_cast<int64_t>(given.timeout_s * 1000));
  given.options.progress = !given.quiet;
  given.options.trace_steps = given.trace_file.empty() ? 0 : 8;
}

int train_one(Arguments& given, const Recipe& recipe, bool backend_given) {
  const Form& form = find_form(recipe, given.options.form);
  TrainResult result;
  if (launched_ranks() > 0) {
    const JoinedJob joined = join_rank_job(kTrainJob, train_arguments(recipe, given.options),
                                           backend_given ? given.where.backend : "auto", given.where.timeout);
    require_ok(joined);
    result = parse_train_result(joined.result.text);
    if (joined.rank != 0) return result.parameters_equal ? 0 : 1;
    given.where.backend = joined.backend;
  } else {
    announce(recipe, form);
    result = run_recipe(recipe, given.where.backend, given.where.ranks, given.options, given.where.timeout);
  }
  std::cout << fmt::format(
      "{} on {} ranks ({}, {}): loss {:.4f} -> {:.4f} in {} steps, {}, {:.2f} s, parameters {} on all ranks\n",
      recipe.forms.size() == 1 ? recipe.name : recipe.name + ", form " + form.name + ",", given.where.ranks,
      given.where.backend, result.device, result.loss.front(), result.loss.back(), result.loss.size(),
      recipe.metrics_in_words(result), result.seconds, result.parameters_equal ? "identical" : "DIFFERENT");
  if (!result.sample.empty()) std::cout << "\n" << result.sample << "\n";
  if (!form.is_right()) std::cout << fmt::format("NOT as expected: it should end in {}\n", form.verdict.kind);
  if (!given.trace_file.empty()) write_file(given.trace_file, result.trace);
  given.results.add(train_row(recipe, given.where.ranks, given.where.backend, given.options, result));
  given.results.write();
  return result.parameters_equal && form.is_right() ? 0 : 1;
}

constexpr const char* kExamples =
    "Examples:\n  brigade train digits --ranks 2\n  brigade train digits --ranks 4 --backend gloo --strategy "
    "ddp_find_unused_parameters_true --epochs 3 --json -\n  brigade train digits --epochs 1 --trace trace.json\n  "
    "brigade train digits --epochs 5 --checkpoint digits.ckpt\n  brigade train digits --epochs 10 --resume digits.ckpt\n  "
    "brigade train --list\n  brigade run -n 2 --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 --master-port 29500 -- "
    "brigade train digits\nA form is a way to write the loop of a recipe, a right one, or one that people write and that "
    "fails: it ends with its verdict and status 1. Under brigade run, torchrun, mpirun or srun each process is one rank: "
    "--ranks is theirs to say, the backend is auto unless given, and rank 0 reports.";

}  // namespace

void add_train(Command& app) {
  auto given = std::make_shared<Arguments>();
  TrainOptions& options = given->options;
  Command train = app.add_command("train", "Run one training job");
  train.footer(kExamples);
  train.add_option("recipe", given->recipe, "what to train: " + recipe_names());
  train.add_flag("--list", given->list, "list the recipes and their forms");
  train.add_option("--form", options.form, "how its loop is written, see --list (without it: the first, a right one)");
  train.add_flag("--compare", given->compare, "run all forms of the recipe, and show them in one table")
      .excludes("--form");
  const Option ranks =
      train.add_option("--ranks", given->where.ranks, "number of ranks").check(number_from(1, 64)).show_default();
  const Option backend = train.add_option("--backend", given->where.backend, backends_in_words()).show_default();
  const Option timeout = train
                             .add_option("--timeout", given->timeout_s,
                                         "seconds that a collective may take (without it: BRIGADE_TIMEOUT, or 30)")
                             .check(number_from(0.1, 86400.0));
  train.add_option("--strategy", options.strategy, dist::strategy_names()).show_default();
  const Option precision =
      train.add_option("--precision", options.precision, amp::precision_names() + " (without it: see --list)");
  train
      .add_option("--device", options.device,
                  "cpu, cuda (the ranks take turns over the GPUs), cuda:N, or auto: cuda where there is one")
      .show_default();
  const Option epochs = train.add_option("--epochs", options.epochs, "passes over the data (without it: see --list)")
                            .check(number_from(1));
  train.add_option("--steps", options.steps, "end after so many steps, also in the middle of an epoch")
      .check(number_from(1));
  const Option batch =
      train.add_option("--batch", options.global_batch, "examples per step, over all ranks (without it: see --list)")
          .check(number_from(1));
  const Option lr =
      train.add_option("--lr", options.lr, "learning rate (without it: see --list)").check(number_from(0, 1e6));
  train.add_option("--seed", options.seed, "seed of the model and of the order of examples")
      .check(number_from(0))
      .show_default();
  train.add_option("--checkpoint", options.checkpoint, "write all that training goes on from, after each epoch");
  const Option save_every =
      train
          .add_option("--save-every", options.save_every,
                      "write it every so many steps too, so that less is lost when a training is killed (charlm: 50)")
          .check(number_from(1));
  train.add_option(
      "--resume", options.resume,
      "go on from such a file, bit for bit, until --epochs (with the same --seed, --batch and --precision)");
  train.add_option("--metrics", options.metrics, "write a line of JSON for each step to a file, while it trains");
  train.add_option("--picture", options.picture, "write what was learned as a PNG, for recipes that make images");
  train.add_option("--data", options.data, "folder of the binary files of CIFAR-10, for the recipe resnet");
  train
      .add_option("--width", options.width,
                  "channels of its first stage (without it: 64 with --data, 16 for the digits)")
      .check(number_from(1, 1024));
  train.add_flag("--quiet", given->quiet, "no progress bar");
  train.add_option("--trace", given->trace_file,
                   "write a trace of the last 8 steps of all ranks to a file, for `brigade explain` and Perfetto");
  given->results.add_json_option(train);
  train.action([given, by_user = Given{ranks, backend, timeout, precision, epochs, batch, lr, save_every}] {
    if (given->list) {
      given->results.begin();
      list_recipes(given->results);
      return 0;
    }
    if (given->recipe.empty()) throw ValueError("train: name a recipe ({}); --list shows them", recipe_names());
    const Recipe& recipe = find_recipe(given->recipe);
    check(*given, recipe, by_user);
    if (given->compare && launched_ranks() > 0)
      throw ValueError("train: --compare starts its ranks itself; start it once, without the launcher");
    given->results.begin();
    if (given->compare) return compare_forms(recipe, given->where, given->options, given->results) ? 0 : 1;
    return train_one(*given, recipe, by_user.backend.is_given());
  });
}

}  // namespace brigade::lab
