// Subcommands of `brigade bench`: their registry, the options that all share, sizes in bytes.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/lab/bench/report.h>
#include <brigade/lab/bench/rounds.h>
#include <brigade/lab/command_line.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace brigade::lab {

// --- The registry of `brigade bench` subcommands: each benchmark's file adds its own from a static object.

// `add` adds subcommands to `bench`. The help lists them by `place`, then in the order in which they
// were added.
struct AddBenchmark {
  AddBenchmark(int place, void (*add)(Command& bench));
};

// Adds all registered subcommands, ordered by place.
void add_benchmarks(Command& bench);

}  // namespace brigade::lab

namespace brigade::lab::bench {

// --- The options that all `brigade bench` commands share, read and checked.

// The options that a command takes, with their defaults as a user would write them. A command does not have an
// option whose default is empty.
struct Takes {
  std::string sizes = "";     // "4K-64M:x4"
  std::string dtypes = "";    // "float32"
  std::string ops = "";       // "sum"
  std::string ranks = "";     // "2", "1,2,4"
  std::string backends = "";  // "shm,gloo"
  std::string rounds = "5-200";
  double noise_percent = 3;
  double seconds = 5;
  int warm_up = 1;
  std::string measure = "time_us";  // what --baseline compares
  bool plots = true;
};

// Must live as long as the command. Call the getters only while the command runs; they throw ValueError for invalid
// combinations of options.
class BenchOptions {
 public:
  void add_to(Command& command, const Takes& takes);

  std::vector<int64_t> sizes() const;  // bytes
  std::vector<DType> dtypes() const;
  std::vector<dist::ReduceOp> ops() const;
  // The numbers of ranks to measure: those of --ranks or, under a launcher, the number that it started. Throws
  // ValueError when --ranks contradicts the launcher.
  std::vector<int> ranks() const;
  // Valid backend names. Under a launcher, "auto" unless --backends is given.
  std::vector<std::string> backends() const;
  RoundLimits limits() const;

  Report report;

 private:
  std::vector<std::string> sizes_, dtypes_, ops_, ranks_, backends_;
  std::optional<Option> ranks_option_, backends_option_;
  int64_t factor_ = 2;
  std::string rounds_;
  double noise_percent_ = 0, seconds_ = 0;
  int warm_up_ = 1;
};

// --link: the speed of a simulated link in the syntax of parse_link, checked. Kept as text, which is passed to the
// ranks.
Option add_link(Command& command, std::string& link, const std::string& of_what);
// --pin
void add_pin(Command& command, bool& pin);
void add_device(Command& command, std::string& device);

// "5" (exactly), "5-200" (from, to). Throws ValueError.
std::pair<int, int> parse_rounds(const std::string& text);
// Throws ValueError that lists the known names.
dist::ReduceOp reduce_op_from_name(const std::string& name);

}  // namespace brigade::lab::bench

namespace brigade::lab {

// --- Byte sizes as given on a command line.

// "512", "512B", "64K" (or 64KiB), "4M", "1G": K, M and G are powers of 1024. Throws ValueError.
int64_t parse_byte_size(const std::string& text);
// Each word is a size or a range: "4K-64M" (4K, then each size `factor` times the previous one, up to 64M),
// "4K-64M:x4" (by this factor), "1M-8M:+1M" (by this step). Throws ValueError, also for more than 10,000 sizes;
// `factor` is at least 2.
std::vector<int64_t> parse_byte_sizes(const std::vector<std::string>& words, int64_t factor);

// "64 KiB", "3 B"
std::string byte_size_in_words(int64_t bytes);

}  // namespace brigade::lab
