// The loop over lines: rank 0 reads them, all ranks run them, and the time of a sample is the slowest rank's.
#include <brigade/lab/bench/follow/follow.h>

#include <brigade/core/error.h>
#include <brigade/lab/options.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

// Returns rank 0's next line on all ranks; empty at the end of the input.
std::string next_line(dist::ProcessGroup& group) {
  std::string line;
  while (group.rank() == 0 && line.empty() && std::getline(std::cin, line))
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
  return group.all_gather_text(line, "the next case").front();
}

std::vector<double> slowest(dist::ProcessGroup& group, const std::vector<double>& own) {
  std::vector<double> us(own.size());
  for (const std::string& text : group.all_gather_text(json(own).dump(), "times of a case")) {
    const std::vector<double> times = json::parse(text);
    for (size_t i = 0; i < us.size(); ++i)
      us[i] = std::max(us[i], times.at(i));
  }
  return us;
}

}  // namespace

void follow(dist::ProcessGroup& group, const CaseSamples& samples_of) {
  for (std::string line = next_line(group); !line.empty(); line = next_line(group)) {
    const std::vector<double> us = slowest(group, samples_of(words_of(line)));
    if (group.rank() == 0) std::cout << json{{"case", line}, {"us", us}}.dump() << std::endl;
  }
}

int64_t count_of(const std::string& word, const char* what, int64_t most) {
  const int64_t count = whole_number(word).value_or(0);
  if (count < 1 || count > most)
    throw ValueError("{}: expected a whole number from 1 to {}, got '{}'", what, most, word);
  return count;
}

}  // namespace brigade::lab::bench
