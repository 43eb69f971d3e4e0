// Every way checks its result, then times single calls; their median is one round's time.
#include <brigade/lab/bench/allreduce_job.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/lab/bench/allreduce_values.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/rank_job.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <map>

namespace brigade::lab {

namespace {

using nlohmann::json;

constexpr dist::ReduceOp kOperations[] = {dist::ReduceOp::Sum, dist::ReduceOp::Avg, dist::ReduceOp::Max,
                                          dist::ReduceOp::Min};

dist::ReduceOp operation_of(const std::string& text) {
  for (const dist::ReduceOp op : kOperations) {
    if (text == dist::name(op)) return op;
  }
  throw ValueError("unknown operation '{}'", text);
}

// One way of reducing: a backend, in place (memory of the group) or with the group's own copies.
struct Way {
  std::string backend;
  bool in_place;
};

// Repetitions that keep a size's share of a round short.
int repetitions(int64_t bytes) { return bytes <= 64 << 10 ? 200 : bytes <= 1 << 20 ? 40 : bytes <= 16 << 20 ? 8 : 3; }

// On one rank: all ways over all sizes, interleaved in rounds. The rank's own group is one of them;
// gloo is made beside it.
std::string allreduce_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  using Clock = std::chrono::steady_clock;
  const json given = json::parse(arguments);
  const DType dtype = dtype_from_name(given.at("dtype"));
  const dist::CollectiveOptions options{.op = operation_of(given.at("op"))};
  std::map<std::string, dist::ProcessGroupPtr> groups{{group->backend(), group}};
  std::vector<Way> ways;
  for (const std::string backend : given.at("backends")) {
    if (!groups.contains(backend)) {
      dist::InitOptions beside;
      beside.backend = backend;
      groups[backend] = dist::init_process_group(beside);
    }
    ways.push_back({backend, true});
    if (backend != "gloo") ways.push_back({backend, false});
  }
  json rows = json::array();
  for (const int64_t bytes : given.at("sizes")) {
    const int64_t count = std::max<int64_t>(bytes / static_cast<int64_t>(itemsize(dtype)), 1);
    std::vector<std::vector<double>> times(ways.size());
    std::vector<int64_t> wrong(ways.size());
    std::vector<Tensor> buffers;
    for (const Way& way : ways)
      buffers.push_back(way.in_place ? groups[way.backend]->allocate(count, dtype) : empty({count}, dtype));
    for (int round = 0; round < given.at("rounds").get<int>() + 1; ++round) {
      for (size_t w = 0; w < ways.size(); ++w) {
        dist::ProcessGroup& g = *groups[ways[w].backend];
        const Tensor& buffer = buffers[w];
        fill_contribution(buffer, group->rank(), group->size());
        g.all_reduce(buffer, options)->wait();
        wrong[w] += count_wrong(buffer, options.op, group->size());
        kernels::fill(buffer, 0.0);  // zeros stay zeros, however often they are reduced
        g.barrier();
        const int times_to_run = repetitions(bytes);
        // The median of single calls: a stall of the scheduler (milliseconds) in one of them must
        // not stand for all.
        std::vector<double> calls;
        for (int i = 0; i < times_to_run; ++i) {
          const auto begin = Clock::now();
          g.all_reduce(buffer, options)->wait();
          calls.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
        }
        if (round > 0) times[w].push_back(median(calls));  // the first round warms up
      }
    }
    // Of all ranks, not of this one.
    const Tensor all_wrong = from_values(std::span<const int64_t>(wrong), {static_cast<int64_t>(wrong.size())});
    group->all_reduce(all_wrong)->wait();
    for (size_t w = 0; w < ways.size(); ++w) {
      rows.push_back({{"backend", ways[w].backend},
                      {"in_place", ways[w].in_place},
                      {"bytes", count * static_cast<int64_t>(itemsize(dtype))},
                      {"times", times[w]},
                      {"wrong", all_wrong.data_ptr<int64_t>()[w]}});
    }
  }
  return rows.dump();
}

const AddRankJob add_job(kAllreduceJob, &allreduce_job);

}  // namespace

std::vector<std::string> reduce_operations() {
  std::vector<std::string> names;
  for (const dist::ReduceOp op : kOperations)
    names.emplace_back(dist::name(op));
  return names;
}

}  // namespace brigade::lab
