// Compares the ranks' lists of parameters and buffers.
#include <brigade/dist/checks/values.h>

#include <brigade/autograd/meta.h>
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

bool are_alike(const std::vector<std::vector<std::string>>& lists, size_t entry) {
  const auto line = [&](const auto& list) { return entry < list.size() ? list[entry] : std::string(); };
  return std::ranges::all_of(lists, [&](const auto& list) { return line(list) == line(lists.front()); });
}

[[noreturn]] void raise(Verdict verdict, const std::string& what, const char* words_of_pytorch, SourceLocation where) {
  set_message(verdict, what);
  std::string text = in_words(verdict);
  if (*words_of_pytorch != '\0') text += fmt::format("\n\nPyTorch says: \"{}\"", words_of_pytorch);
  throw ConsistencyError(text, {std::move(verdict)}, where);
}

// Compares each rank's first lines, which list its options.
void check_same_options(const std::vector<std::vector<std::string>>& lists, const Replica& replica,
                        SourceLocation where) {
  for (size_t i = 0; i < replica.options.size(); ++i) {
    if (are_alike(lists, i)) continue;
    Verdict verdict = model_mismatch(lists, i, where);
    verdict.parameters.clear();
    verdict.advice = "give every rank the same options";
    raise(std::move(verdict),
          fmt::format("The ranks wrap with different options: {} at {}", in_words(replica.wrapper), to_string(where)),
          "", where);
  }
}

void check_same_order(ProcessGroup& group, const Replica& replica, const std::vector<std::string>& made_at,
                      SourceLocation where) {
  const auto swapped = group.attached<WrapperHistory>().add(replica.module, made_at);
  if (!swapped) return;
  const Verdict verdict = wrappers_in_other_order(
      {swapped->rank, made_at[static_cast<size_t>(swapped->rank)], swapped->later, swapped->other, swapped->earlier},
      where);
  throw ConsistencyError(in_words(verdict), {verdict}, where);
}

}  // namespace

void check_same_replicas(ProcessGroup& group, const Replica& replica, SourceLocation where) {
  std::string mine = to_string(where) + "\n";
  for (const ReplicaOption& each : replica.options)
    mine += fmt::format("option `{}`: {}\n", each.name, each.value);
  for (const ReplicaTensor& each : replica.tensors) {
    const autograd::AutogradMeta* const meta = autograd::meta(each.tensor);
    mine += fmt::format("{} `{}` {} {}{}\t{}\n", each.kind, each.name, name(each.tensor.dtype()),
                        to_string(each.tensor.sizes()),
                        each.kind == "parameter" && !each.tensor.requires_grad() ? " frozen" : "",
                        meta ? to_string(meta->requires_grad_set_at) : "");
  }
  const std::vector<std::string> texts =
      group.all_gather_text(mine, Topic{Phase::Construction, Name("model check"), replica.wrapper}, where);
  std::vector<std::vector<std::string>> lists, set_at(texts.size());
  size_t longest = 0;
  std::vector<std::string> made_at;
  for (const std::string& text : texts) {
    lists.push_back(lines_of(text));
    made_at.push_back(lists.back().front());  // the first line is the call site
    lists.back().erase(lists.back().begin());
    for (std::string& line : lists.back()) {
      const size_t end = line.rfind('\t');
      if (end == std::string::npos) continue;
      set_at[lists.size() - 1].push_back(line.substr(end + 1));
      line.resize(end);
    }
  }
  check_same_order(group, replica, made_at, where);
  check_same_options(lists, replica, where);
  for (auto& list : lists) {
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(std::min(replica.options.size(), list.size())));
    longest = std::max(longest, list.size());
  }
  for (size_t i = 0; i < longest; ++i) {
    if (are_alike(lists, i)) continue;
    const std::optional<Verdict> frozen = frozen_on_some_ranks(lists, set_at, where);
    Verdict verdict = frozen ? *frozen : model_mismatch(lists, i, where);
    std::vector<std::string> sizes;
    for (const auto& list : lists)
      sizes.push_back(fmt::format("has {} parameters", std::ranges::count_if(list, [](const std::string& line) {
                                    return line.starts_with("parameter ");
                                  })));
    if (std::ranges::adjacent_find(sizes, std::ranges::not_equal_to()) != sizes.end())
      verdict.cause.note = by_rank_in_words(sizes);
    raise(std::move(verdict),
          fmt::format("The ranks wrap different models: entry {} of {} at {}", i, in_words(replica.wrapper),
                      to_string(where)),
          "DDP expects same model across all ranks", where);
  }
}

}  // namespace brigade::dist
