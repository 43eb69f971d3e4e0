// Compares the ranks' lists of parameters and buffers, and broadcasts values in chunks of 25 MiB.
#include <brigade/dist/checks/model.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/groups/wrapper_history.h>
#include <brigade/dist/reducer/comm_hook.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>

namespace brigade::dist {

namespace {

constexpr int64_t kChunkBytes = 25 << 20;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

// The tensors' bytes, one after the other, in host memory. Those of a device travel together.
void gather_bytes(std::span<const Tensor> tensors, char* memory, int64_t total) {
  const Device device = tensors.front().device();
  const bool together = device != Device() && std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& tensor) {
                          return tensor.device() == device;
                        });
  const Tensor there = together ? empty({total}, {kUInt8, device}) : Tensor();
  char* const to = together ? static_cast<char*>(there.raw_data()) : memory;
  const Device to_device = together ? device : Device();
  size_t at = 0;
  for (const Tensor& tensor : tensors) {
    const Tensor source = kernels::contiguous(tensor);
    copy_bytes(to + at, to_device, source.raw_data(), source.device(), source.nbytes());
    at += source.nbytes();
  }
  if (together) copy_bytes(memory, Device(), to, device, at);
}

// Who has what: ranks by line, in rank order.
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

// Each rank's first lines, which say its options.
void check_same_options(const std::vector<std::vector<std::string>>& lists, const Replica& replica,
                        SourceLocation where) {
  for (size_t i = 0; i < replica.options.size(); ++i) {
    const Versions versions = versions_of(lists, i);
    if (versions.size() < 2) continue;
    const std::string message =
        fmt::format("DDP expects same options across all ranks, but those of {} at {} differ:", replica.title,
                    to_string(where)) +
        in_words(versions);
    Verdict verdict = model_mismatch(lists, i, message, where);
    verdict.parameters.clear();
    verdict.advice = "give every rank the same options";
    throw ConsistencyError(message, {std::move(verdict)}, where);
  }
}

void check_same_order(ProcessGroup& group, const Replica& replica, const std::vector<std::string>& made_at,
                      SourceLocation where) {
  const auto swapped = group.wrappers().add(replica.module, made_at);
  if (!swapped) return;
  Verdict verdict = wrappers_in_other_order(
      {swapped->rank, made_at[static_cast<size_t>(swapped->rank)], swapped->later, swapped->other, swapped->earlier},
      where);
  const std::string message = verdict.message + ". " + verdict.advice;
  throw ConsistencyError(message, {std::move(verdict)}, where);
}

// Runs of tensors that fit into one chunk each; a tensor is never split.
std::vector<std::span<const Tensor>> chunks_of(const std::vector<Tensor>& tensors) {
  std::vector<std::span<const Tensor>> chunks;
  size_t begin = 0;
  while (begin < tensors.size()) {
    size_t end = begin;
    int64_t bytes = 0;
    while (end < tensors.size() &&
           (end == begin || bytes + static_cast<int64_t>(tensors[end].nbytes()) <= kChunkBytes)) {
      bytes += static_cast<int64_t>(tensors[end++].nbytes());
    }
    chunks.emplace_back(tensors.data() + begin, end - begin);
    begin = end;
  }
  return chunks;
}

// Writes the tensors whose bytes are not those in `memory`.
void take_bytes(std::span<const Tensor> part, const char* memory, int64_t bytes) {
  // What this rank holds: tensors of the CPU are looked at where they are.
  const bool on_cpu = std::all_of(part.begin(), part.end(), [](const Tensor& t) { return t.device() == Device(); });
  std::vector<char> own(on_cpu ? 0 : static_cast<size_t>(bytes));
  if (!own.empty()) gather_bytes(part, own.data(), bytes);
  size_t at = 0;
  for (const Tensor& target : part) {
    const size_t size = target.nbytes();
    const Tensor now = on_cpu ? kernels::contiguous(target) : Tensor();
    const void* const held = on_cpu ? now.raw_data() : own.data() + at;
    if (size > 0 && std::memcmp(held, memory + at, size) != 0) {
      const Tensor received = empty(target.sizes(), target.dtype());
      std::memcpy(received.raw_data(), memory + at, size);
      kernels::copy(target, received);
      target.bump_version();
    }
    at += size;
  }
}

// One chunk. The Work holds the tensors.
WorkPtr begin_broadcast(ProcessGroup& group, std::span<const Tensor> part, int root, std::string_view description,
                        SourceLocation where) {
  int64_t bytes = 0;
  for (const Tensor& tensor : part)
    bytes += static_cast<int64_t>(tensor.nbytes());
  const Tensor chunk = group.allocate(bytes, kUInt8);
  auto* const memory = static_cast<char*>(chunk.raw_data());
  const bool is_root = group.rank() == root;
  if (is_root) gather_bytes(part, memory, bytes);
  WorkPtr sent = group.broadcast(chunk, {.root = root, .description = description}, where);
  return then(std::move(sent), [chunk, is_root, bytes, targets = std::vector<Tensor>(part.begin(), part.end())] {
    if (!is_root) take_bytes(targets, static_cast<const char*>(chunk.raw_data()), bytes);
  });
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
      group.all_gather_text(mine, fmt::format("model check of {}", replica.title), where);
  std::vector<std::vector<std::string>> lists;
  size_t longest = 0;
  std::vector<std::string> made_at;
  for (const std::string& text : texts) {
    lists.push_back(lines_of(text));
    made_at.push_back(lists.back().front());  // each begins with it
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
                    replica.title, to_string(where));
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

void broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root,
                         std::string_view description, SourceLocation where) {
  if (group.size() == 1) return;
  for (const std::span<const Tensor> part : chunks_of(tensors))
    begin_broadcast(group, part, root, description, where)->wait();
}

std::vector<WorkPtr> begin_broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root,
                                               std::string_view description, SourceLocation where) {
  std::vector<WorkPtr> works;
  if (group.size() == 1) return works;
  for (const std::span<const Tensor> part : chunks_of(tensors))
    works.push_back(begin_broadcast(group, part, root, description, where));
  return works;
}

}  // namespace brigade::dist
