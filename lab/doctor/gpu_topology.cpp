// Parses the table of connections between GPUs: a header line of names, then a line for each GPU.
#include <brigade/lab/doctor/machine.h>

#include <brigade/lab/options.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

namespace brigade::lab {
namespace {

// Removes ANSI escapes: newer versions of nvidia-smi underline the names.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      while (i < text.size() && !(text[i] >= '@' && text[i] <= '~' && text[i] != '['))
        ++i;
      continue;
    }
    plain += text[i];
  }
  return plain;
}

// Returns 3 for "GPU3", and -1 for any other word.
int gpu_number(const std::string& word) {
  if (!word.starts_with("GPU")) return -1;
  return static_cast<int>(whole_number(word.substr(3)).value_or(-1));
}

}  // namespace

std::vector<GpuPair> gpu_pairs_in(const std::string& table) {
  std::vector<GpuPair> pairs;
  std::vector<int> columns;
  std::istringstream lines(without_escapes(table));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (columns.empty()) {
      for (const std::string& word : words) {
        if (gpu_number(word) < 0) break;  // GPUs come first
        columns.push_back(gpu_number(word));
      }
      continue;
    }
    const int row = gpu_number(words[0]);
    if (row < 0 || words.size() <= columns.size()) continue;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] > row) pairs.push_back({row, columns[i], words[i + 1]});
    }
  }
  return pairs;
}

std::vector<GpuPair> read_gpu_pairs() {
  const std::unique_ptr<FILE, int (*)(FILE*)> out(popen("timeout 10 nvidia-smi topo -m 2>/dev/null", "r"), &pclose);
  std::string table;
  std::array<char, 4096> room;
  while (out) {
    const size_t count = std::fread(room.data(), 1, room.size(), out.get());
    if (count == 0) break;
    table.append(room.data(), count);
  }
  return gpu_pairs_in(table);
}

// As in the legend of nvidia-smi.
std::string way_in_words(const std::string& way) {
  if (way.starts_with("NV")) return fmt::format("{} NVLink{}", way.substr(2), way == "NV1" ? "" : "s");
  if (way == "PIX") return "within one PCIe switch";
  if (way == "PXB") return "over several PCIe switches";
  if (way == "PHB") return "over a PCIe host bridge";
  if (way == "NODE") return "within one NUMA node";
  if (way == "SYS") return "between sockets";
  return "another way";
}

std::string in_words(const std::vector<GpuPair>& pairs) {
  std::vector<std::string> ways;
  for (const GpuPair& pair : pairs) {
    if (std::ranges::find(ways, pair.way) == ways.end()) ways.push_back(pair.way);
  }
  std::string text;
  for (const std::string& way : ways) {
    text += fmt::format("{}{} ({}): ", text.empty() ? "" : "; ", way_in_words(way), way);
    if (ways.size() == 1) return text + (pairs.size() == 1 ? "both" : "all pairs");
    bool is_first = true;
    for (const GpuPair& pair : pairs) {
      if (pair.way != way) continue;
      text += fmt::format("{}{}-{}", is_first ? "" : ", ", pair.first, pair.second);
      is_first = false;
    }
  }
  return text;
}

}  // namespace brigade::lab
