// brigade bench follow: ddp and allreduce start the ranks and wait until the input lines end; accuracy has no
// ranks.
#include <brigade/core/device_runtime.h>
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/follow/follow.h>
#include <brigade/lab/options.h>
#include <brigade/lab/rank_job.h>

#include <memory>

namespace brigade::lab::bench {
namespace {

struct Arguments {
  std::string backend = "shm";
  int ranks = 2;
  std::string device = "cpu";
};

void add_case(Command& follow, const std::string& name, const std::string& about, const char* job,
              const std::string& example, bool takes_device = false) {
  auto given = std::make_shared<Arguments>();
  Command command = follow.add_command(name, about);
  command.footer("Example:\n  echo '" + example + "' | brigade bench follow " + name +
                 "\nBeside PyTorch in the same run: bench/beside_torch.py " + name);
  command.add_option("--backend", given->backend, "one of " + backends_in_words()).show_default();
  command.add_option("--ranks", given->ranks, "number of ranks, each on a core of its own with one thread")
      .check(number_from(1, 64))
      .show_default();
  if (takes_device) add_device(command, given->device);
  command.action([given, job] {
    choose_device(given->device);  // throws here instead of on every rank
    // The timeout is as long as another program may take for its turn.
    require_ok(run_rank_job(job, given->device, given->backend, given->ranks, std::chrono::minutes(10), 0));
    return 0;
  });
}

void add_commands(Command& bench) {
  Command follow =
      bench.add_command("follow", "Cases that standard input names, a line each: for programs that take turns");
  follow.require_command();
  add_case(follow, "ddp", "Training steps: MODEL MODE STEPS, as in brigade bench ddp", kFollowDdpJob, "mlp strict 10",
           true);
  add_case(follow, "allreduce", "All-reduces: DTYPE BYTES WAY CALLS, where WAY is in_place or staged",
           kFollowAllreduceJob, "float32 1048576 in_place 10");
  Command accuracy = follow.add_command("accuracy", "Errors of long sums in float32: OPERATION LENGTH");
  accuracy.footer(
      "Example:\n  echo 'dot 4194304' | brigade bench follow accuracy\nBeside PyTorch, of the same numbers: "
      "bench/beside_torch.py accuracy");
  accuracy.action([] {
    follow_accuracy();
    return 0;
  });
}

const AddBenchmark add_follow(7, &add_commands);

}  // namespace
}  // namespace brigade::lab::bench
