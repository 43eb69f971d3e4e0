// Collects the steps of all ranks by iteration and optimizer, and writes them as a table.
#include <brigade/lab/trace_file.h>

#include <brigade/dist/errors/verdict.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace brigade::lab {
namespace {

using nlohmann::json;

// One optimizer's step on all ranks.
struct Step {
  double scale = 0;
  bool skipped = false;
  std::string where;
  std::vector<int> found_on;  // ranks
};

// Keyed by iteration, optimizer and step number.
using Steps = std::map<std::tuple<int64_t, std::string, uint64_t>, Step>;

// The operation that first made a non-finite value, keyed by iteration and rank.
using Makers = std::map<std::pair<int64_t, int>, std::string>;

void read(const Trace& trace, Steps& steps, Makers& makers) {
  for (const TraceSlice& slice : trace.slices) {
    const json& details = *slice.arguments;
    if (details.contains("non_finite")) makers[{details.at("iteration"), slice.rank}] = details.at("non_finite");
    if (!details.contains("loss_scale")) continue;
    Step& step = steps[{details.at("iteration"), details.at("optimizer"), details.at("step")}];
    step.scale = details.at("loss_scale");
    step.skipped = step.skipped || details.at("skipped").get<bool>();
    if (step.where.empty()) step.where = details.at("where");
    if (details.at("found_inf").get<bool>()) step.found_on.push_back(slice.rank);
  }
}

}  // namespace

std::string scaler_history_in_words(const Trace& trace) {
  Steps steps;
  Makers makers;
  read(trace, steps, makers);
  const json& facts = trace.facts;
  std::string text = fmt::format("The loss scaler of {} on {} ranks over {}\n\n", facts.at("module").get<std::string>(),
                                 facts.at("ranks").get<int>(), facts.at("backend").get<std::string>());
  if (steps.empty())
    return text + "No step of this trace was taken by a loss scaler; train in float16, as with --precision 16-mixed.\n";
  size_t width = 9;
  for (const auto& [key, step] : steps)
    width = std::max(width, std::get<1>(key).size());
  text += fmt::format("  iteration  {:<{}}     scale  step     infinity or NaN\n", "optimizer", width);
  size_t skipped = 0;
  for (auto& [key, step] : steps) {
    const auto& [iteration, optimizer, number] = key;
    std::string found;
    if (!step.found_on.empty()) {
      std::sort(step.found_on.begin(), step.found_on.end());
      found = fmt::format("on {}", dist::ranks_in_words(step.found_on));
      for (const int rank : step.found_on) {
        const auto maker = makers.find({iteration, rank});
        if (maker == makers.end()) continue;
        found += fmt::format(", first made by {}", maker->second);
        break;
      }
    }
    text += fmt::format("  {:>9}  {:<{}}  {:>8g}  {:<7}  {}\n", iteration, optimizer, width, step.scale,
                        step.skipped ? "skipped" : "taken", found.empty() ? "-" : found);
    skipped += step.skipped;
  }
  const double first = steps.begin()->second.scale;
  const double last = steps.rbegin()->second.scale;
  const auto [lowest, highest] = std::minmax_element(
      steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.second.scale < b.second.scale; });
  const double least = lowest->second.scale, most = highest->second.scale;
  const std::string way = first != last   ? fmt::format("went from {:g} to {:g}", first, last)
                          : least == most ? fmt::format("stayed {:g}", first)
                                          : fmt::format("moved between {:g} and {:g}", least, most);
  text += fmt::format("\n{} of {} steps {} skipped; the scale {}.\n", skipped, steps.size(),
                      skipped == 1 ? "was" : "were", way);
  if (skipped > 0) {
    text +=
        "A skipped step lowers the scale until gradients fit into float16: a few at the start, and one now and then when "
        "the scale has grown, are as meant.\n";
  }
  return text;
}

}  // namespace brigade::lab
