// Compares the ranks' lists of parameters and buffers.
#include <brigade/dist/checks/values.h>

#include <brigade/dist/checks/wrapper_history.h>
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace brigade::dist {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

// Each distinct line with the ranks that have it, in rank order.
using Versions = std::vector<std::pair<std::string, std::vector<int>>>;

Versions versions_of(const std::vector<std::vector<std::string>>& lists, size_t entry) {
  Versions versions;
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    const std::string line = entry < lists[rank].size() ? lists[rank][entry] : "nothing (its list ends here)";
    const auto same =
        std::find_if(versions.begin(), versions.end(), [&](const auto& version) { return version.first == line; });
    if (same == versions.end()) {
      versions.push_back({line, {static_cast<int>(rank)}});
    } else {
      same->second.push_back(static_cast<int>(rank));
    }
  }
  return versions;
}

std::string in_words(const Versions& versions) {
  std::string text;
  for (const auto& [line, ranks] : versions)
    text += fmt::format("\n  {} {}: {}", ranks.size() == 1 ? "rank" : "ranks", list_of(ranks), line);
  return text;
}

// Compares each rank's first lines, which list its options.
void check_same_options(const std::vector<std::vector<std::string>>& lists, const Replica& replica,
                        SourceLocation where) {
  for (size_t i = 0; i < replica.options.size(); ++i) {
    const Versions versions = versions_of(lists, i);
    if (versions.size() < 2) continue;
    const std::string message = fmt::format("DDP expects same options across all ranks, but those of {} at {} differ:",
                                            in_words(replica.wrapper), to_string(where)) +
                                in_words(versions);
    Verdict verdict = model_mismatch(lists, i, message, where);
    verdict.parameters.clear();
    verdict.advice = "give every rank the same options";
    throw ConsistencyError(message, {std::move(verdict)}, where);
  }
}

void check_same_order(ProcessGroup& group, const Replica& replica, const std::vector<std::string>& made_at,
                      SourceLocation where) {
  const auto swapped = group.attached<WrapperHistory>().add(replica.module, made_at);
  if (!swapped) return;
  Verdict verdict = wrappers_in_other_order(
      {swapped->rank, made_at[static_cast<size_t>(swapped->rank)], swapped->later, swapped->other, swapped->earlier},
      where);
  const std::string message = verdict.message + ". " + verdict.advice;
  throw ConsistencyError(message, {std::move(verdict)}, where);
}

}  // namespace

void check_same_replicas(ProcessGroup& group, const Replica& replica, SourceLocation where) {
  std::string mine = to_string(where) + "\n";
  for (const ReplicaOption& each : replica.options)
    mine += fmt::format("option `{}`: {}\n", each.name, each.value);
  for (const ReplicaTensor& each : replica.tensors) {
    mine += fmt::format("{} `{}` {} {}{}\n", each.kind, each.name, name(each.tensor.dtype()),
                        to_string(each.tensor.sizes()),
                        each.kind == "parameter" && !each.tensor.requires_grad() ? " frozen" : "");
  }
  const std::vector<std::string> texts =
      group.all_gather_text(mine, Topic{Phase::Construction, Name("model check"), replica.wrapper}, where);
  std::vector<std::vector<std::string>> lists;
  size_t longest = 0;
  std::vector<std::string> made_at;
  for (const std::string& text : texts) {
    lists.push_back(lines_of(text));
    made_at.push_back(lists.back().front());  // the first line is the call site
    lists.back().erase(lists.back().begin());
  }
  check_same_order(group, replica, made_at, where);
  check_same_options(lists, replica, where);
  for (auto& list : lists) {
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(std::min(replica.options.size(), list.size())));
    longest = std::max(longest, list.size());
  }
  for (size_t i = 0; i < longest; ++i) {
    const Versions versions = versions_of(lists, i);
    if (versions.size() < 2) continue;
    std::string message =
        fmt::format("DDP expects same model across all ranks, but the ranks disagree at entry {} of {} at {}:", i,
                    in_words(replica.wrapper), to_string(where));
    message += in_words(versions);
    for (const auto& list : lists) {
      if (list.size() == lists[0].size()) continue;
      message += "\n  entries per rank:";
      for (const auto& each : lists)
        message += fmt::format(" {}", each.size());
      break;
    }
    throw ConsistencyError(message, {model_mismatch(lists, i, message, where)}, where);
  }
}

}  // namespace brigade::dist
