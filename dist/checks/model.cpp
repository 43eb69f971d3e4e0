// Compares the ranks' lists of parameters and buffers, and broadcasts values in chunks of 25 MiB.
#include <brigade/dist/checks/model.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/dist/diagnosis/kinds.h>
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

// Each rank's first `count` lines, which say its options.
void check_same_options(const std::vector<std::vector<std::string>>& lists, size_t count, const std::string& model,
                        SourceLocation where) {
  for (size_t i = 0; i < count; ++i) {
    const Versions versions = versions_of(lists, i);
    if (versions.size() < 2) continue;
    const std::string message =
        fmt::format("DDP expects same options across all ranks, but those of DDP({}) differ:", model) +
        in_words(versions) + "\nGive every rank the same options (" + to_string(where) + ")";
    Verdict verdict = model_mismatch(lists, i, message, where);
    verdict.parameters.clear();
    verdict.advice = "give every rank the same options";
    throw ConsistencyError(message, {std::move(verdict)}, where);
  }
}

}  // namespace

void check_same_replicas(ProcessGroup& group, const std::vector<ReplicaTensor>& tensors,
                         const std::vector<ReplicaOption>& options, const std::string& model, SourceLocation where) {
  std::string mine;
  for (const ReplicaOption& each : options)
    mine += fmt::format("option `{}`: {}\n", each.name, each.value);
  for (const ReplicaTensor& each : tensors) {
    mine += fmt::format("{} `{}` {} {}{}\n", each.kind, each.name, name(each.tensor.dtype()),
                        to_string(each.tensor.sizes()),
                        each.kind == "parameter" && !each.tensor.requires_grad() ? " frozen" : "");
  }
  const std::vector<std::string> texts =
      group.all_gather_text(mine, fmt::format("model check of DDP({})", model), where);
  std::vector<std::vector<std::string>> lists;
  size_t longest = 0;
  for (const std::string& text : texts)
    lists.push_back(lines_of(text));
  check_same_options(lists, options.size(), model, where);
  for (auto& list : lists) {
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(std::min(options.size(), list.size())));
    longest = std::max(longest, list.size());
  }
  for (size_t i = 0; i < longest; ++i) {
    const Versions versions = versions_of(lists, i);
    if (versions.size() < 2) continue;
    std::string message = fmt::format(
        "DDP expects same model across all ranks, but the ranks disagree at entry {} of DDP({}):", i, model);
    message += in_words(versions);
    for (const auto& list : lists) {
      if (list.size() == lists[0].size()) continue;
      message += "\n  entries per rank:";
      for (const auto& each : lists)
        message += fmt::format(" {}", each.size());
      break;
    }
    message += "\nBuild the same model, with the same registration order, on every rank before wrapping it (" +
               to_string(where) + ")";
    throw ConsistencyError(message, {model_mismatch(lists, i, message, where)}, where);
  }
}

void broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root,
                         std::string_view description, SourceLocation where) {
  if (group.size() == 1) return;
  size_t begin = 0;
  while (begin < tensors.size()) {
    size_t end = begin;
    int64_t bytes = 0;
    while (end < tensors.size() &&
           (end == begin || bytes + static_cast<int64_t>(tensors[end].nbytes()) <= kChunkBytes)) {
      bytes += static_cast<int64_t>(tensors[end++].nbytes());
    }
    const Tensor chunk = group.allocate(bytes, kUInt8);
    auto* const memory = static_cast<char*>(chunk.raw_data());
    const std::span<const Tensor> part(tensors.data() + begin, end - begin);
    if (group.rank() == root) gather_bytes(part, memory, bytes);
    // What this rank holds: tensors of the CPU are looked at where they are.
    const bool on_cpu = std::all_of(part.begin(), part.end(), [](const Tensor& t) { return t.device() == Device(); });
    std::vector<char> own(group.rank() == root || on_cpu ? 0 : static_cast<size_t>(bytes));
    if (!own.empty()) gather_bytes(part, own.data(), bytes);
    group.broadcast(chunk, {.root = root, .description = description}, where)->wait();
    if (group.rank() != root) {
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
    begin = end;
  }
}

}  // namespace brigade::dist
