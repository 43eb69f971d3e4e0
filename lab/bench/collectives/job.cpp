// Makes the ways of each size, which share buffers, and measures them in turns.
#include <brigade/lab/bench/collectives/tables.h>

#include <brigade/core/factory.h>
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/collectives/call_way.h>
#include <brigade/lab/bench/on_ranks.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

// Pairs of tensors in one kind of memory, reused by all ways.
class Memory {
 public:
  // Tensors have `count` elements. A null group stands for plain memory.
  Memory(dist::ProcessGroup* group, DType dtype, int64_t count) : group_(group), dtype_(dtype), count_(count) {}

  Buffers buffers(size_t call, int64_t inputs, int64_t outputs, bool in_place, int rank) {
    while (pairs_.size() <= call)
      pairs_.emplace_back();
    auto& [first, second] = pairs_[call];
    make(first);
    if (!in_place) {
      make(second);
      return {first.narrow(0, 0, inputs), second.narrow(0, 0, outputs)};
    }
    const auto part = [&](int64_t count) {
      return first.narrow(0, count < std::max(inputs, outputs) ? rank * count : 0, count);
    };
    return {part(inputs), part(outputs)};
  }

 private:
  void make(Tensor& tensor) const {
    if (!tensor.defined()) tensor = group_ ? group_->allocate(count_, dtype_) : empty({count_}, dtype_);
  }

  dist::ProcessGroup* group_;
  DType dtype_;
  int64_t count_;
  std::vector<std::pair<Tensor, Tensor>> pairs_;
};

// Gloo's own memory is plain memory.
bool has_memory(const std::string& backend, const std::string& memory) {
  return memory == "plain" || backend != "gloo";
}

class Job {
 public:
  Job(const dist::ProcessGroupPtr& group, const json& arguments)
      : given_(arguments),
        group_(group),
        groups_(groups_of(group, arguments)),
        limits_(round_limits_from(arguments.at("limits"))) {
    if (given_.at("family") == "overlap") computation_.emplace();
  }

  std::string run() {
    measure(0);
    for (const int64_t bytes : given_.at("sizes"))
      measure(bytes);
    return rows_.dump();
  }

 private:
  // Measures all ways of one size; size 0 stands for collectives without data.
  void measure(int64_t bytes) {
    std::map<std::string, Memory> memories;
    std::vector<CallWay> ways;
    for (const std::string dtype : given_.at("dtypes")) {
      for (const std::string name : given_.at("collectives"))
        add_ways(find_collective(name), bytes, dtype_from_name(dtype), memories, ways);
      if (bytes == 0) break;
    }
    if (ways.empty()) return;
    std::vector<Turn> turns;
    const bool checks_every = given_.at("check") == "every";
    const int progress = given_.at("progress");
    for (CallWay& way : ways) {
      turns.push_back(
          {.name = way.collective->name, .sample = [this, &way, checks_every, progress, checked = false]() mutable {
             if (checks_every || !checked) way.check();
             checked = true;
             return computation_ ? way.overlap(*computation_, progress) : way.time();
           }});
    }
    const RoundsRun run = take_turns(turns, limits_, group_.get());
    if (group_->rank() == 0)
      std::cerr << fmt::format("{}: {}\n", bytes == 0 ? "without data" : byte_size_in_words(bytes),
                               in_words(run, limits_));
    for (size_t i = 0; i < ways.size(); ++i)
      rows_.push_back(row_of(ways[i], turns[i], run));
  }

  void add_ways(const Collective& collective, int64_t bytes, DType dtype, std::map<std::string, Memory>& memories,
                std::vector<CallWay>& ways) {
    if (collective.has_data == (bytes == 0)) return;
    if (!collective.has_data) return add_ways_without_data(collective, ways);
    for (const auto& backend : given_.at("backends")) {
      for (const std::string memory : given_.at("memory")) {
        if (!has_memory(backend, memory)) continue;
        for (const std::string place : given_.at("place")) {
          for (const std::string op : given_.at("ops")) {
            if (op == "avg" && !is_floating_point(dtype)) continue;
            for (const int in_flight : given_.at("in_flight")) {
              CallWay way = way_of(collective, backend, memory, dtype, reduce_op_from_name(op));
              way.count = collective.count_of(bytes, dtype, group_->size());
              way.bytes = collective.bytes_of(way.count, dtype, group_->size());
              fill_calls(way, bytes, place == "in", in_flight, memories);
              ways.push_back(std::move(way));
              if (place == "in") add_plain_loops(ways);
            }
            if (!collective.reduces) break;
          }
        }
      }
    }
  }

  // Adds plain loops to compare with the last way, if they support it.
  void add_plain_loops(std::vector<CallWay>& ways) const {
    const CallWay& last = ways.back();
    if (!given_.at("plain_loops") || last.collective->name != "all_reduce" || !PlainLoops::fit(*last.group)) return;
    CallWay way = last;
    way.use_plain_loops();
    ways.push_back(std::move(way));
  }

  void add_ways_without_data(const Collective& collective, std::vector<CallWay>& ways) {
    if (computation_) return;  // a blocking call overlaps nothing
    for (const auto& backend : given_.at("backends")) {
      ways.push_back(way_of(collective, backend, "none", kUInt8, dist::ReduceOp::Sum));
      ways.back().calls.resize(1);
    }
  }

  CallWay way_of(const Collective& collective, const std::string& backend, const std::string& memory, DType dtype,
                 dist::ReduceOp op) {
    return {.collective = &collective,
            .group = groups_.at(backend).get(),
            .backend = backend,
            .memory = memory,
            .dtype = dtype,
            .op = op,
            .repetitions = given_.at("calls")};
  }

  void fill_calls(CallWay& way, int64_t size, bool in_place, int in_flight, std::map<std::string, Memory>& memories) {
    const bool own = way.memory == "group";
    const std::string key = std::string(name(way.dtype)) + (own ? " of " + way.backend : "");
    const auto item = static_cast<int64_t>(itemsize(way.dtype));
    // The largest tensor of a collective at this size.
    const int64_t room = std::max<int64_t>(size / item, group_->size());
    Memory& memory = memories.try_emplace(key, own ? way.group : nullptr, way.dtype, room).first->second;
    const int64_t total = way.bytes / item;
    for (int call = 0; call < in_flight; ++call) {
      way.calls.push_back(memory.buffers(static_cast<size_t>(call), way.collective->whole_input ? total : way.count,
                                         way.collective->whole_output ? total : way.count, in_place, group_->rank()));
    }
  }

  json row_of(const CallWay& way, const Turn& turn, const RoundsRun& run) const {
    json row{{"key", way.key()}, {"us", turn.us}, {"wrong", way.wrong}, {"rounds", run.rounds}};
    if (!computation_) return row;
    // The values of warm-up rounds come first.
    const auto counted = [&](const std::vector<double>& all) {
      return std::vector<double>(all.end() - static_cast<std::ptrdiff_t>(turn.us.size()), all.end());
    };
    row["compute_us"] = counted(way.compute_us);
    row["comm_us"] = counted(way.comm_us);
    return row;
  }

  json given_;
  dist::ProcessGroupPtr group_;
  std::map<std::string, dist::ProcessGroupPtr> groups_;
  RoundLimits limits_;
  std::optional<Computation> computation_;
  json rows_ = json::array();
};

const AddRankJob add_job(kCollectivesJob, &collectives_job);

}  // namespace

std::string collectives_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  return Job(group, json::parse(arguments)).run();
}

}  // namespace brigade::lab::bench
