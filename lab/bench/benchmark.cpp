// The list of benchmarks that the static objects fill, and the values of their options.
#include <brigade/lab/bench/benchmark.h>

#include <brigade/core/error.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/simulated_link.h>
#include <brigade/lab/options.h>
#include <brigade/lab/rank_job.h>

#include <fmt/format.h>

#include <map>

namespace brigade::lab {

// --- The list of benchmarks that the static objects fill.

namespace {

using Add = void (*)(Command& bench);

std::multimap<int, Add>& all() {
  static std::multimap<int, Add> added;
  return added;
}

}  // namespace

AddBenchmark::AddBenchmark(int place, Add add) { all().emplace(place, add); }

void add_benchmarks(Command& bench) {
  for (const auto& [place, add] : all())
    add(bench);
}

}  // namespace brigade::lab

namespace brigade::lab::bench {

// --- Adds the options of a command and parses their values.

namespace {

constexpr dist::ReduceOp kOperations[] = {dist::ReduceOp::Sum, dist::ReduceOp::Avg, dist::ReduceOp::Max,
                                          dist::ReduceOp::Min};

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const dist::ReduceOp op : kOperations)
    names.emplace_back(dist::name(op));
  return names;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return words;
}

// Makes a check from a parser that throws on invalid text.
template <class F>
ValueCheck check_by(const std::string& about, F parse) {
  return {about, [parse](const std::string& text) -> std::string {
            try {
              parse(text);
              return "";
            } catch (const Error& error) {
              return error.what();
            }
          }};
}

}  // namespace

std::pair<int, int> parse_rounds(const std::string& text) {
  const size_t dash = text.find('-', 1);
  const int64_t least = whole_number(text.substr(0, dash)).value_or(-1);
  const int64_t most = dash == std::string::npos ? least : whole_number(text.substr(dash + 1)).value_or(-1);
  if (least < 1 || most < least || most > 1'000'000)
    throw ValueError("rounds are a number from 1 to 1000000, or a range such as 5-200, got '{}'", text);
  return {static_cast<int>(least), static_cast<int>(most)};
}

dist::ReduceOp reduce_op_from_name(const std::string& name) {
  for (const dist::ReduceOp op : kOperations) {
    if (name == dist::name(op)) return op;
  }
  throw ValueError("unknown operation '{}'; known are sum, avg, max, min", name);
}

Option add_link(Command& command, std::string& link, const std::string& of_what) {
  return command.add_option("--link", link, "LATENCYus,BANDWIDTHGB/s: " + of_what)
      .check(check_by("LINK", [](const std::string& text) { parse_link(text); }));
}

void add_pin(Command& command, bool& pin) {
  command.add_flag("--pin", pin, "each rank on a core of its own, with one thread");
}

void add_device(Command& command, std::string& device) {
  command.add_option("--device", device, "cpu, cuda (the ranks take turns over the GPUs), cuda:N or auto")
      .show_default();
}

void BenchOptions::add_to(Command& command, const Takes& takes) {
  const auto list = [&](const std::string& names, std::vector<std::string>& value, const std::string& usual,
                        const std::string& help, ValueCheck check) -> std::optional<Option> {
    if (usual.empty()) return std::nullopt;
    value = split(usual);
    return command.add_option(names, value, help + fmt::format(" [{}]", usual))
        .separated_by(',')
        .check(std::move(check));
  };
  list("--sizes", sizes_, takes.sizes, "bytes with K, M, G, and ranges: 4K,1M-64M, 4-1G:x4, 1M-8M:+1M",
       check_by("SIZES", [](const std::string& text) { parse_byte_sizes({text}, 2); }));
  if (!takes.sizes.empty()) {
    command.add_option("--factor", factor_, "in a range without :x or :+ each size is so many times the one before")
        .check(number_from(2, 1 << 30))
        .show_default();
  }
  list("--dtypes,--dtype", dtypes_, takes.dtypes, "element types", dtype_name());
  list("--ops,--op", ops_, takes.ops, "what the ranks reduce by", one_of(operation_names()));
  ranks_option_ = list("--ranks", ranks_, takes.ranks, "numbers of ranks (those of the launcher, under one)",
                       whole_number_from(1, 64));
  backends_option_ = list("--backends,--backend", backends_, takes.backends, "some of " + backends_in_words(),
                          check_by("BACKENDS", [](const std::string& text) { check_backend(text); }));
  rounds_ = takes.rounds;
  noise_percent_ = takes.noise_percent;
  seconds_ = takes.seconds;
  warm_up_ = takes.warm_up;
  command
      .add_option("--rounds,--steps", rounds_,
                  "counted rounds: exactly (5), or from-to (5-200), until --noise is reached")
      .check(check_by("ROUNDS", [](const std::string& text) { parse_rounds(text); }))
      .show_default();
  command.add_option("--noise", noise_percent_, "percent of a median that its noise may be, before rounds end")
      .check(positive_number())
      .show_default();
  command.add_option("--seconds", seconds_, "rounds of what takes turns end after so long, whatever the noise")
      .check(number_from(0.001, 3600))
      .show_default();
  report.add_options(command, takes.measure, takes.plots);
}

std::vector<int64_t> BenchOptions::sizes() const { return parse_byte_sizes(sizes_, factor_); }

std::vector<DType> BenchOptions::dtypes() const {
  std::vector<DType> all;
  for (const std::string& name : dtypes_)
    all.push_back(dtype_from_name(name));
  return all;
}

std::vector<dist::ReduceOp> BenchOptions::ops() const {
  std::vector<dist::ReduceOp> all;
  for (const std::string& name : ops_)
    all.push_back(reduce_op_from_name(name));
  return all;
}

std::vector<int> BenchOptions::ranks() const {
  const std::vector<int> wanted = numbers_in<int>(ranks_);
  const int joined = joined_ranks();
  if (joined == 0) return wanted;
  if (ranks_option_ && ranks_option_->is_given() && wanted != std::vector<int>{joined})
    throw ValueError("--ranks: a launcher has started {} ranks, which are those of this benchmark; leave out --ranks",
                     joined);
  return {joined};
}

std::vector<std::string> BenchOptions::backends() const {
  const bool is_given = backends_option_ && backends_option_->is_given();
  return joined_ranks() > 0 && !is_given ? std::vector<std::string>{"auto"} : backends_;
}

RoundLimits BenchOptions::limits() const {
  const auto [least, most] = parse_rounds(rounds_);
  return {.least = least, .most = most, .noise = noise_percent_ / 100, .seconds = seconds_, .warm_up = warm_up_};
}

}  // namespace brigade::lab::bench
