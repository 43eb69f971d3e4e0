// brigade train: one training job.
#include <brigade/lab/commands/train.h>

#include <brigade/core/device_runtime.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/options.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/results.h>
#include <brigade/lab/strategy.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace brigade::lab {

namespace {

using nlohmann::json;

std::string digits_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  const json given = json::parse(arguments);
  DigitsOptions options;
  options.strategy = given.at("strategy");
  options.precision = given.at("precision");
  options.device = given.at("device");
  options.epochs = given.at("epochs");
  options.global_batch = given.at("global_batch");
  options.lr = given.at("lr");
  options.seed = given.at("seed");
  options.progress = given.at("progress");
  options.trace_steps = given.at("trace_steps");
  const DigitsResult result = train_digits(group, options);
  return json{{"loss", result.loss},
              {"device", result.device},
              {"accuracy", result.accuracy},
              {"parameters_equal", result.parameters_equal},
              {"seconds", result.seconds},
              {"step_ms", result.step_ms},
              {"trace", group->rank() == 0 ? result.trace : std::string()}}
      .dump();
}

const AddRankJob add_digits_job("train-digits", &digits_job);

std::string in_words(const DigitsOptions& options) {
  return json{
      {"strategy", options.strategy}, {"precision", options.precision},       {"device", options.device},
      {"epochs", options.epochs},     {"global_batch", options.global_batch}, {"lr", options.lr},
      {"seed", options.seed},         {"progress", options.progress},         {"trace_steps", options.trace_steps}}
      .dump();
}

DigitsResult result_of(const RankResult& rank_result) {
  const json report = json::parse(rank_result.text);
  DigitsResult result;
  result.loss = report.at("loss").get<std::vector<double>>();
  result.step_ms = report.at("step_ms").get<std::vector<double>>();
  result.device = report.at("device");
  result.accuracy = report.at("accuracy");
  result.parameters_equal = report.at("parameters_equal");
  result.seconds = report.at("seconds");
  result.trace = report.at("trace");
  return result;
}

}  // namespace

DigitsResult run_digits(const std::string& backend, int ranks, const DigitsOptions& options,
                        std::chrono::milliseconds timeout) {
  const RankJobOutcome outcome = run_rank_job("train-digits", in_words(options), backend, ranks, timeout);
  require_ok(outcome);
  return result_of(outcome.ranks.at(0));
}

json train_row(int ranks, const std::string& backend, const DigitsOptions& options, const DigitsResult& result) {
  return {{"recipe", "digits"},
          {"form", "default"},
          {"ranks", ranks},
          {"backend", backend},
          {"device", result.device},
          {"strategy", options.strategy},
          {"precision", options.precision},
          {"epochs", options.epochs},
          {"loss", result.loss},
          {"metrics", {{"accuracy", result.accuracy}}},
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
    DigitsOptions options;
    bool quiet = false;
    std::string trace_file;
    Results results;
  };
  auto given = std::make_shared<Arguments>();
  Command train = app.add_command("train", "Run one training job");
  train.footer(
      "Examples:\n  brigade train digits --ranks 2\n  brigade train digits --ranks 4 --backend gloo --strategy "
      "ddp_find_unused_parameters_true --epochs 3 --json -\n  brigade train digits --epochs 1 --trace trace.json\n  "
      "brigade run -n 2 --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 --master-port 29500 -- brigade train "
      "digits\nUnder brigade run, torchrun, mpirun or srun each process is one rank: --ranks is theirs to say, the "
      "backend is auto unless given, and rank 0 reports.");
  train.add_option("recipe", given->recipe, "what to train: digits").required();
  const Option ranks =
      train.add_option("--ranks", given->ranks, "number of ranks").check(number_from(1, 64)).show_default();
  const Option backend =
      train.add_option("--backend", given->backend, "shm, gloo, hosts, auto or threads").show_default();
  train.add_option("--timeout", given->timeout_s, "seconds that a collective may take")
      .check(number_from(0.1, 86400.0))
      .show_default();
  train.add_option("--strategy", given->options.strategy, "ddp or ddp_find_unused_parameters_true").show_default();
  train.add_option("--precision", given->options.precision, "32-true or 64-true").show_default();
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
  train.add_flag("--quiet", given->quiet, "no progress bar");
  train.add_option("--trace", given->trace_file,
                   "write a trace of the last 8 steps of all ranks to a file, for `brigade explain` and Perfetto");
  given->results.add_json_option(train);
  train.action([given, ranks, backend] {
    if (given->recipe != "digits") throw ValueError("unknown recipe '" + given->recipe + "'; known is digits");
    // Wrong names are told before any rank starts.
    strategy_options(given->options.strategy);
    check_backend(given->backend);
    if (given->options.precision != "32-true" && given->options.precision != "64-true")
      throw ValueError("unknown precision '" + given->options.precision + "'; known are 32-true, 64-true");
    choose_device(given->options.device);
    const int launched = launched_ranks();
    if (launched > 0 && ranks.is_given() && given->ranks != launched)
      throw ValueError(
          fmt::format("--ranks {}, but the launcher has started {} ranks; leave it out", given->ranks, launched));
    if (launched > 0) given->ranks = launched;
    if (given->options.global_batch % given->ranks != 0)
      throw ValueError(fmt::format("the global batch of {} cannot be shared evenly by {} ranks",
                                   given->options.global_batch, given->ranks));
    const auto timeout = std::chrono::milliseconds(static_cast<int64_t>(given->timeout_s * 1000));
    given->options.progress = !given->quiet;
    given->options.trace_steps = given->trace_file.empty() ? 0 : 8;
    check_writable(given->trace_file);
    given->results.begin();
    DigitsResult result;
    if (launched > 0) {
      const JoinedJob joined = join_rank_job("train-digits", in_words(given->options),
                                             backend.is_given() ? given->backend : "auto", timeout);
      require_ok(joined);
      result = result_of(joined.result);
      if (joined.rank != 0) return result.parameters_equal ? 0 : 1;
      given->backend = joined.backend;
    } else {
      result = run_digits(given->backend, given->ranks, given->options, timeout);
    }
    std::cout << fmt::format(
        "digits on {} ranks ({}, {}): loss {:.4f} -> {:.4f} in {} steps, held-out accuracy {:.2f} %, {:.2f} s, "
        "parameters {} on all ranks\n",
        given->ranks, given->backend, result.device, result.loss.front(), result.loss.back(), result.loss.size(),
        100 * result.accuracy, result.seconds, result.parameters_equal ? "identical" : "DIFFERENT");
    if (!given->trace_file.empty()) write_text(given->trace_file, result.trace);
    given->results.add(train_row(given->ranks, given->backend, given->options, result));
    given->results.write();
    return result.parameters_equal ? 0 : 1;
  });
}

}  // namespace brigade::lab
