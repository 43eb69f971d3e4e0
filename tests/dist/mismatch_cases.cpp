// Ranks that meet in different collectives: the error guesses a cause only if the history leaves one explanation, and
// of two ranks neither is blamed without a reason.
#include "nets.h"
#include "rank_case.h"

#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/join.h>
#include <brigade/dist/ddp/model_averaging.h>
#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

namespace brigade::test::mismatch_cases {
using Group = dist::ProcessGroupPtr;

struct NormedImpl : nn::Module {
  nn::Linear a{nullptr};
  nn::BatchNorm1d n{nullptr};
  bool skip = false;
  NormedImpl() {
    a = register_module("a", nn::Linear(4, 4));
    n = register_module("n", nn::BatchNorm1d(4));
  }
  Tensor forward(const Tensor& x) { return skip ? a(x) : n(a(x)); }
};
BRIGADE_MODULE(Normed);

template <class Module>
struct Training {
  Training(const Group& group, Module module)
      : net(std::move(module)),
        ddp(net, group, {.find_unused_parameters = true}),
        sgd(net->parameters(), {.lr = 0.1}) {}
  void backward() { square(ddp(full({4, 4}, 1.0))).mean().backward(); }
  void step() {
    sgd.step();
    sgd.zero_grad();
  }
  Module net;
  dist::DistributedDataParallel<Module> ddp;
  optim::SGD sgd;
};

// A program whose last rank does something else than the others.
struct Program {
  std::string what;
  std::function<void(const Group&, bool odd)> run;
  std::string likely;  // a part of the reason
  std::string fix;     // a part of the reason or of what to do
  bool blamed;         // even as one of two ranks
};

Normed converted(const Group& group) {
  Normed net;
  dist::convert_sync_batchnorm(*net.ptr(), group);
  return net;
}

void reduce(const Group& group, int64_t numel, dist::CollectiveOptions options = {}) {
  group->all_reduce(full({numel}, 1.0), options)->wait();
}

std::vector<Program> own_calls() {
  return {
      {"a call of its own",
       [](const Group& group, bool odd) {
         Training<BranchingNet> training(group, BranchingNet());
         for (int i = 0; i < 3; ++i) {
           training.backward();
           if (odd && i == 1) reduce(group, 1);
           training.step();
         }
       },
       "", "never calls all_reduce at", false},
      {"a call that all have made together, at another time",
       [](const Group& group, bool odd) {
         Training<BranchingNet> training(group, BranchingNet());
         for (int i = 0; i < 4; ++i) {
           training.backward();
           if (i == 0 || (odd && i == 2)) reduce(group, 1);
           training.step();
         }
       },
       "", "as all ranks have done together before", false},
      {"fewer batches before a barrier",
       [](const Group& group, bool odd) {
         Training<BranchingNet> training(group, BranchingNet());
         for (int i = 0; i < (odd ? 2 : 3); ++i) {
           training.backward();
           training.step();
         }
         group->barrier();
       },
       "", "comes to it earlier (fewer batches)", false},
      {"a call of its own in a join, where the others have no data",
       [](const Group& group, bool odd) {
         Training<BranchingNet> training(group, BranchingNet());
         dist::Join join(training.ddp);
         for (int i = 0; i < (odd ? 3 : 1); ++i) {
           training.backward();
           if (i == 1) reduce(group, 1);
         }
         join.finish();
       },
       "", "inside the join, where a rank without data takes part", false},
      {"a gradient hook that exchanges something, on all ranks but one",
       [](const Group& group, bool odd) {
         Training<BranchingNet> training(group, BranchingNet());
         const Tensor output = training.ddp(full({4, 4}, 1.0));
         const auto exchange = [&](const Tensor& gradient) {
           reduce(group, 1);
           return gradient;
         };
         if (!odd) output.register_hook(exchange);
         square(output).mean().backward();
       },
       "", "in its backward, to which that of rank", false},
      {"another size", [](const Group& group, bool odd) { reduce(group, odd ? 3 : 4); }, "",
       "the tensors have different sizes", false},
      {"another operation",
       [](const Group& group, bool odd) { reduce(group, 4, {.op = odd ? dist::ReduceOp::Max : dist::ReduceOp::Sum}); },
       "", "the operations differ", false}};
}

std::vector<Program> layers_and_forwards() {
  return {{"a SyncBatchNorm left out once",
           [](const Group& group, bool odd) {
             Training<Normed> training(group, converted(group));
             for (int i = 0; i < 3; ++i) {
               training.net->skip = odd && i == 1;
               training.backward();
             }
           },
           "came to its backward without the layer", "run the same layers", true},
          {"a SyncBatchNorm that is one on one rank only",
           [](const Group& group, bool odd) {
             Training<Normed> training(group, odd ? converted(group) : Normed());
             training.backward();
           },
           "", "convert the module on every rank", false},
          {"an evaluation through the wrapper",
           [](const Group& group, bool odd) {
             Training<Normed> training(group, Normed());
             for (int i = 0; i < 2; ++i) {
               training.backward();
               training.step();
               if (odd) training.ddp(full({4, 4}, 1.0));
             }
           },
           "", "evaluates through the wrapper", false},
          {"a communication hook on one rank only",
           [](const Group& group, bool odd) {
             Training<BranchingNet> training(group, BranchingNet());
             if (odd) training.ddp.register_comm_hook(dist::fp16_compress_hook());
             training.backward();
           },
           "by the communication hook fp16_compress", "register the same communication hook", false},
          {"a join that one rank has not opened",
           [](const Group& group, bool odd) {
             Training<BranchingNet> training(group, BranchingNet());
             std::optional<dist::Join> join;
             if (!odd) join.emplace(training.ddp);
             training.backward();
             if (join) join->finish();
           },
           "", "open Join on every rank before the loop", false},
          {"a step of the other of two wrappers",
           [](const Group& group, bool odd) {
             Training<BranchingNet> first(group, BranchingNet()), second(group, BranchingNet());
             first.backward();
             second.backward();
             (odd ? second : first).step();
           },
           "", "step the same optimizers in the same order on every rank", false},
          {"models that one rank averages less often",
           [](const Group& group, bool odd) {
             Training<BranchingNet> training(group, BranchingNet());
             dist::PeriodicModelAverager averager(group, odd ? 2 : 1);
             for (int i = 0; i < 3; ++i) {
               training.backward();
               averager.average_parameters(training.net);
             }
           },
           "", "the same period and warm-up", false},
          {"a ZeroRedundancyOptimizer on all ranks but one",
           [](const Group& group, bool odd) {
             Training<BranchingNet> training(group, BranchingNet());
             std::optional<dist::ZeroRedundancyOptimizer<optim::SGD>> zero;
             if (!odd) zero.emplace(training.net->parameters(), optim::SGDOptions{.lr = 0.1}, group);
             training.backward();
           },
           "", "makes a ZeroRedundancyOptimizer here that rank", false}};
}

std::vector<Program> steps() {
  return {{"a backward under no_sync before a step",
           [](const Group& group, bool odd) {
             Training<BranchingNet> training(group, BranchingNet());
             for (int i = 0; i < 2; ++i) {
               const auto guard = odd && i == 1 ? std::optional(training.ddp.no_sync()) : std::nullopt;
               training.backward();
               training.step();
             }
           },
           "with 1 backward under no_sync", "outside no_sync", true},
          {"a step left out",
           [](const Group& group, bool odd) {
             Training<BranchingNet> training(group, BranchingNet());
             for (int i = 0; i < 3; ++i) {
               training.backward();
               if (!(odd && i == 1)) training.step();
             }
           },
           "goes on without the step that rank 0 takes", "whether to step", true},
          {"a backward left out",
           [](const Group& group, bool odd) {
             Training<BranchingNet> training(group, BranchingNet());
             for (int i = 0; i < 3; ++i) {
               if (!(odd && i == 1)) training.backward();
               training.step();
             }
           },
           "so far all ranks did after one reduced backward: it left out", "as many backwards before a step", true},
          {"fewer micro-batches from the first step on",
           [](const Group& group, bool odd) {
             Training<BranchingNet> training(group, BranchingNet());
             for (int i = 0; i < (odd ? 2 : 3); ++i)
               training.backward();
             training.step();
           },
           "", "either rank 0 left out a step, or rank", false}};
}

void check(const std::string& backend, int ranks, const std::vector<Program>& programs) {
  const int last = ranks - 1;
  for (const Program& program : programs) {
    CAPTURE(program.what);
    const auto told = run_ranks(backend, ranks, [&](const Group& group) -> std::string {
      try {
        program.run(group, group->rank() == last);
      } catch (const dist::CollectiveError& error) {
        const dist::Verdict& verdict = error.verdicts().at(0);
        return fmt::format("{}|{}", dist::list_of(verdict.ranks), error.what());
      }
      return "ran to the end";
    });
    for (const Rank& rank : told) {
      CHECK(rank.error == "");
      CHECK(rank.result == told[0].result);
    }
    const std::string& text = told[0].result;
    CAPTURE(text);
    CHECK(text.starts_with(ranks > 2 || program.blamed ? fmt::format("{}|", last) : "|"));
    const size_t why = text.find("\nwhy: ");
    REQUIRE(why != std::string::npos);
    CHECK(text.find(program.likely, why) != std::string::npos);
    REQUIRE(text.find("\ndo:  ", why) != std::string::npos);
    CHECK(text.find(program.fix, why) != std::string::npos);
  }
}

const Sizes kSizes{.threads = {2, 3}, .shm = {2}, .others = {}};
const AddRankCase own(
    "a mismatch with a call of the program's own is not explained by the steps beside it",
    [](const std::string& backend, int ranks) { check(backend, ranks, own_calls()); }, kSizes);
const AddRankCase layer(
    "a mismatch of layers, forwards and hooks",
    [](const std::string& backend, int ranks) { check(backend, ranks, layers_and_forwards()); }, kSizes);
const AddRankCase step("a mismatch of steps is explained by the backwards before earlier steps",
                       [](const std::string& backend, int ranks) { check(backend, ranks, steps()); },
                       {.threads = {2, 3}, .shm = {3}, .others = {}});
const AddRankCase gloo("a mismatch is the same verdict over Gloo",
                       [](const std::string& backend, int ranks) {
                         if (backend != "gloo") return;
                         std::vector<Program> programs = steps();
                         programs.push_back(own_calls()[1]);
                         programs.push_back(layers_and_forwards()[0]);
                         check(backend, ranks, programs);
                       },
                       {.threads = {}, .shm = {}, .others = {2, 3}});

// Two ranks meet in one collective, two in another one with more data: on one side, each rank has a neighbor in its own
// collective. A transport that took the others' data would write past the end, or end the process.
void check_halves(const std::string& backend, int ranks) {
  const std::function<void(const Group&, int64_t)> collectives[] = {
      [](const Group& group, int64_t numel) { reduce(group, numel); },
      [](const Group& group, int64_t numel) {
        group->all_gather(full({numel * group->size()}, 1.0), full({numel}, 1.0))->wait();
      }};
  for (int again = 0; again < 6; ++again) {
    for (const auto& collective : collectives) {
      expect_well(backend, ranks, [&](const Group& group) {
        const int64_t numel = group->rank() < 2 ? 45 : 620;
        return expect_error<dist::CollectiveError>([&] { collective(group, numel); },
                                                   {"The ranks met in different collectives", "of 45 x", "of 620 x"});
      });
    }
  }
}
const AddRankCase add_halves(
    "two pairs of ranks that meet in different collectives hear of it, and nothing is exchanged", &check_halves,
    {.threads = {4}, .shm = {4}, .others = {4}});

}  // namespace brigade::test::mismatch_cases
