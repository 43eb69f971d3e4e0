// Compares every mechanism of DDP with one process on the whole batch, or with its documented semantics.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/dist/checks/values.h>
#include <brigade/dist/ddp/explanation.h>
#include <brigade/dist/ddp/join.h>

namespace brigade::test::mechanisms_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

void check_options_equal_one_process(const std::string& backend, int ranks) {
  const Values expected = plain_reference(ranks);
  struct Variant {
    const char* name;
    dist::DDPOptions options;
    bool checkpointed = false;
  };
  const std::vector<Variant> variants{
      {"default", {}},
      {"static_graph", {.static_graph = true}},
      {"find_unused", {.find_unused_parameters = true}},
      {"copies", {.gradient_as_bucket_view = false}},
      {"copies, one bucket per parameter",
       {.gradient_as_bucket_view = false, .bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6}},
      {"small first bucket", {.bucket_cap_mb = 25, .first_bucket_mb = 1e-4}},
      {"without diagnosis", {.diagnosis = false, .check_steps = false}},
      {"verified at each step", {.verify_every = 1}},
      {"delayed parameters",
       {.delay_all_reduce_named_params = {"c.weight", "c.bias"}, .param_to_hook_all_reduce = "a.weight"}},
      {"delayed, small buckets",
       {.bucket_cap_mb = 1e-6,
        .first_bucket_mb = 1e-6,
        .delay_all_reduce_named_params = {"b.weight", "c.weight"},
        .param_to_hook_all_reduce = "b.weight"}},
      {"checkpointed", {}, true},
  };
  for (const Variant& variant : variants) {
    CAPTURE(variant.name);
    expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) {
      return compare(train(group, variant.options, {}, variant.checkpointed), expected);
    });
  }
  // A delayed bucket is the last one, and a wrong name is refused before anything is exchanged.
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    Net net;
    try {
      Ddp ddp(net, group, {.delay_all_reduce_named_params = {"nothing"}, .param_to_hook_all_reduce = "a.weight"});
      return "an unknown name was taken";
    } catch (const ValueError&) {
    }
    try {
      Ddp ddp(net, group, {.delay_all_reduce_named_params = {"a.weight"}});
      return "half of the pair was taken";
    } catch (const ValueError& error) {
      if (std::string(error.what()).find("need to be set at the same time.") == std::string::npos) return error.what();
    }
    const Ddp ddp(net, group, {.delay_all_reduce_named_params = {"c.weight"}, .param_to_hook_all_reduce = "a.weight"});
    const auto layout = ddp.reducer().buckets().layouts();
    return layout.size() == 2 && layout.back().parameters == std::vector<uint32_t>{4} ? "" : "the delayed bucket";
  });
  // An ignored parameter keeps this rank's gradient and value; everything else is averaged.
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    manual_seed(static_cast<uint64_t>(group->rank()) + 5);
    Net net;
    const Values own = values_of({net->a->bias});
    Ddp ddp(net, group, {.parameters_and_buffers_to_ignore = {"a.bias"}});
    if (values_of({net->a->bias}) != own) return "the ignored parameter was broadcast";
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    loss_of(ddp(batch_of(group->rank(), 0))).backward();
    optimizer.step();
    const auto report = dist::verify_consistency(*group, net);
    for (const dist::Verdict& verdict : report.verdicts) {
      if (verdict.parameters.at(0).name != "a.bias") return verdict.message;
    }
    return report.verdicts.size() == 2 || ranks == 1 ? "" : fmt::format("{} verdicts", report.verdicts.size());
  });
}
const AddRankCase add_options_equal_one_process("every option gives the parameters of one process on the whole batch",
                                                &check_options_equal_one_process);

void check_accumulation(const std::string& backend, int ranks) {
  // Two micro-batches a step, the first under no_sync (nested guards); one process sums the gradients of both.
  const Values expected = reference([ranks](Net& net, optim::Optimizer& optimizer, int s) {
    optimizer.zero_grad();
    loss_of(net(whole_batch(ranks, s))).backward();
    loss_of(net(whole_batch(ranks, s + 50))).backward();
    optimizer.step();
  });
  for (const bool views : {true, false}) {
    for (const bool set_to_none : {true, false}) {
      CAPTURE(views);
      CAPTURE(set_to_none);
      expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
        manual_seed(1);
        Net net;
        Ddp ddp(net, group, {.gradient_as_bucket_view = views});
        optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
        uint64_t collectives = 0;
        for (int s = 0; s < kSteps; ++s) {
          optimizer.zero_grad(set_to_none);
          collectives = ddp.reducer().past().collectives;
          {
            const auto outer = ddp.no_sync();
            const auto inner = ddp.no_sync();
            loss_of(ddp(batch_of(group->rank(), s))).backward();
          }
          if (ddp.reducer().past().collectives != collectives) return "a collective ran under no_sync";
          loss_of(ddp(batch_of(group->rank(), s + 50))).backward();
          optimizer.step();
        }
        return compare(values_of(net->parameters()), expected);
      });
      // Two forwards with two reduced backwards, or with one backward of both losses.
      expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
        manual_seed(1);
        Net net;
        Ddp ddp(net, group, {.gradient_as_bucket_view = views});
        optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
        for (int s = 0; s < kSteps; ++s) {
          optimizer.zero_grad(set_to_none);
          const Tensor first = loss_of(ddp(batch_of(group->rank(), s)));
          const Tensor second = loss_of(ddp(batch_of(group->rank(), s + 50)));
          if (s % 2 == 0) {
            first.backward();
            second.backward();
          } else {
            (first + second).backward();
          }
          optimizer.step();
        }
        return compare(values_of(net->parameters()), expected);
      });
    }
  }
}
const AddRankCase add_accumulation("accumulation under no_sync and several backwards add up", &check_accumulation,
                                   {.shm = {2, 3, 4, 8}});

void check_join(const std::string& backend, int ranks) {
  // Rank r has 2 + r batches. One process: each iteration takes the existing batches, divided by the number of all
  // ranks or of those with data.
  for (const bool by_initial : {true, false}) {
    manual_seed(1);
    Net one;
    optim::SGD plain(one->parameters(), {.lr = 0.1, .momentum = 0.9});
    for (int s = 0; s < 2 + ranks - 1; ++s) {
      plain.zero_grad();
      Tensor loss;
      int with_data = 0;
      for (int r = 0; r < ranks; ++r) {
        if (s >= 2 + r) continue;
        ++with_data;
        const Tensor part = loss_of(one(batch_of(r, s)));
        loss = loss.defined() ? loss + part : part;
      }
      (loss * (1.0 / (by_initial ? ranks : with_data))).backward();
      plain.step();
    }
    const Values expected = values_of(one->parameters());
    CAPTURE(by_initial);
    expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
      manual_seed(1);
      Net net;
      Ddp ddp(net, group, {.bucket_cap_mb = 1e-4, .first_bucket_mb = 1e-4});
      optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
      {
        dist::Join join(ddp, {.divide_by_initial_world_size = by_initial});
        for (int s = 0; s < 2 + group->rank(); ++s) {
          optimizer.zero_grad();
          loss_of(ddp(batch_of(group->rank(), s))).backward();
          optimizer.step();
        }
        join.finish();
      }
      const std::string wrong = compare(values_of(net->parameters()), expected);
      if (!wrong.empty()) return wrong;
      // Afterwards the wrapper works as before.
      optimizer.zero_grad();
      loss_of(ddp(batch_of(group->rank(), 0))).backward();
      return dist::verify_consistency(*group, net).consistent() ? "" : "a step after join()";
    });
  }
  const std::vector<Rank> outcome = run_ranks(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    Net net;
    Ddp ddp(net, group);
    dist::Join join(ddp, {.throw_on_early_termination = true});
    for (int s = 0; s < (group->rank() == 0 ? 2 : 3); ++s)
      loss_of(ddp(batch_of(group->rank(), s))).backward();
    join.finish();
    return "";
  });
  CHECK(outcome[0].text.starts_with("Rank 0 exhausted all inputs. (called at "));
  for (size_t r = 1; r < outcome.size(); ++r)
    CHECK(outcome[r].text.starts_with(
        "Detected at least one rank that exhausted inputs. Throwing across all ranks. (called at "));
}
const AddRankCase add_join("join: ranks with different numbers of batches", &check_join);

void check_optimizer_in_backward(const std::string& backend, int ranks) {
  const Values expected = plain_reference(ranks);
  for (const double bucket_mb : {25.0, 1e-6}) {
    CAPTURE(bucket_mb);
    expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
      manual_seed(1);
      Net net;
      Ddp ddp(net, group, {.bucket_cap_mb = bucket_mb, .first_bucket_mb = bucket_mb});
      ddp.apply_optimizer_in_backward([](std::vector<Tensor> parameters) {
        return std::make_unique<optim::SGD>(std::move(parameters), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
      });
      for (int s = 0; s < kSteps; ++s) {
        loss_of(ddp(batch_of(group->rank(), s))).backward();
        for (const Tensor& parameter : net->parameters()) {
          if (parameter.grad().defined()) return "a gradient is left";
        }
      }
      return compare(values_of(net->parameters()), expected);
    });
  }
}
const AddRankCase add_optimizer_in_backward("optimizers that step in backward", &check_optimizer_in_backward);

std::string check_verify_consistency(const dist::ProcessGroupPtr& group) {
  const int ranks = group->size();
  manual_seed(1);
  Net net;
  if (!dist::verify_consistency(*group, net).consistent()) return "equal models differ";
  const bool odd = group->rank() == ranks - 1;
  if (odd) {
    auto* const values = net->b->weight.data_ptr<double>();
    values[11] = std::nextafter(values[11], 10.0);
    const NoGradGuard no_grad;
    net->c->bias.fill_(7);
  }
  const auto report = dist::verify_consistency(*group, net);
  if (report.verdicts.size() != 2) return fmt::format("{} verdicts", report.verdicts.size());
  const dist::Verdict& first = report.verdicts[0];
  if (first.kind != "parameters_differ" || first.parameters.at(0).name != "b.weight") return first.message;
  // Of two ranks, neither is the odd one.
  if (first.ranks != (ranks > 2 ? std::vector<int>{ranks - 1} : std::vector<int>{})) return "ranks in " + first.message;
  if (first.message.find("first at element 11 of [8, 8]") == std::string::npos ||
      first.message.find("(1 ulp apart)") == std::string::npos)
    return first.message;
  return report.verdicts[1].parameters.at(0).name == "c.bias" ? "" : report.verdicts[1].message;
}
const AddRankCase add_verify_consistency("verify_consistency finds the first tensor, element and rank",
                                         &check_verify_consistency);

void check_logging_data(const std::string& backend, int ranks) {
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    Net net;
    Ddp ddp(net, group, {.bucket_cap_mb = 1e-4, .first_bucket_mb = 1e-4});
    ddp.timeline().keep(4);
    for (int s = 0; s < 3; ++s)
      loss_of(ddp(batch_of(group->rank(), s))).backward();
    const dist::LoggingData data = dist::logging_data(ddp);
    if (data.ints.at("world_size") != ranks || data.ints.at("rank") != group->rank()) return "who";
    if (data.ints.at("iteration") != 3 || data.ints.at("num_parameter_tensors") != 6) return "counts";
    if (data.ints.at("total_parameter_size_bytes") != 8 * (32 + 8 + 64 + 8 + 24 + 3)) return "bytes";
    if (data.ints.at("has_rebuilt_buckets") != 1 || data.strings.at("rebuilt_bucket_sizes").empty()) return "rebuilt";
    const std::string name = backend == "nccl-on-host" ? "nccl" : backend;
    if (data.strings.at("backend_name") != name || data.strings.at("module_name") != "Net") return "names";
    if (data.strings.at("prev_iteration_grad_ready_order_indices").size() < 11) return "ready order";
    const auto& rounds = ddp.timeline().rounds();
    if (rounds.size() != 3) return "rounds kept";
    for (const dist::RoundEvents& round : rounds) {
      if (!(round.forward_began <= round.began && round.began <= round.compute_ended &&
            round.compute_ended <= round.ended))
        return "order of a round";
      if (round.overlap() < 0 || round.overlap() > 1) return "overlap";
      for (const int64_t ready : round.ready) {
        if (ready < round.began || ready > round.compute_ended) return "ready times";
      }
      for (const dist::BucketEvents& bucket : round.buckets) {
        if (!(bucket.filled <= bucket.launched && bucket.launched <= bucket.finished)) return "order of a bucket";
      }
    }
    return data.ints.at("avg_backward_compute_time") > 0 ? "" : "times";
  });
}
const AddRankCase add_logging_data("logging data and the timeline", &check_logging_data);

std::string check_timeline_on_demand(const dist::ProcessGroupPtr& group) {
  Net net;
  Ddp ddp(net, group, {.diagnosis = false, .check_steps = false});
  loss_of(ddp(batch_of(group->rank(), 0))).backward();
  if (!ddp.timeline().rounds().empty()) return "recorded without being asked";
  ddp.timeline().keep(2);
  loss_of(ddp(batch_of(group->rank(), 1))).backward();
  const auto& rounds = ddp.timeline().rounds();
  if (rounds.size() != 1 || rounds.back().round != 2) return fmt::format("{} backwards", rounds.size());
  return std::ranges::all_of(rounds.back().ready, [](int64_t at) { return at > 0; }) ? "" : "times of gradients";
}
const AddRankCase add_timeline_on_demand("without diagnosis the timeline records once it is asked for",
                                         &check_timeline_on_demand);

}  // namespace brigade::test::mechanisms_cases
