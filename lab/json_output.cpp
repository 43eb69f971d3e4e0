// Describes the machine and the command, and computes the statistics of samples.
#include <brigade/lab/json.h>

#include <brigade/core/atomic_file.h>
#include <brigade/core/device_runtime.h>
#include <brigade/core/error.h>
#include <brigade/core/version.h>
#include <brigade/dist/groups/backends.h>
#include <brigade/kernels/kernel.h>
#include <brigade/lab/hardware.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <thread>

namespace brigade::lab {
namespace {

#ifdef __clang__
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

}  // namespace

std::vector<std::string> command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');)
    words.push_back(word);
  if (!words.empty()) words[0] = words[0].substr(words[0].rfind('/') + 1);
  return words;
}

nlohmann::json json_envelope(const std::vector<std::string>& command) {
  nlohmann::json libraries;
  if (dist::find_backend("gloo").missing.empty()) libraries["gloo"] = true;
  const std::string processor = processor_name();
  const std::string governor = frequency_governor();
  return {{"command", command},
          {"version", std::string(version())},
          {"commit", std::string(commit())},
          {"machine",
           {{"cpu", processor.empty() ? "unknown" : processor},
            {"cores", std::thread::hardware_concurrency()},
            {"memory", memory_bytes()},
            {"gpus", loaded_devices()},
            {"libraries", libraries},
            {"instruction_set", std::string(kernels::instruction_set())},
            {"vector_bits", vector_bits()},
            {"numa_nodes", numa_nodes()},
            {"governor", governor.empty() ? "unknown" : governor},
            {"load", load_average()},
            {"compiler", kCompiler}}},
          {"results", nlohmann::json::array()}};
}

void check_output(const std::string& path) {
  if (path.empty()) return;
  if (path == "-") throw ValueError("cannot write -: a file is expected here");
  try {
    check_writable(path);
  } catch (const IoError& error) {
    throw ValueError(std::string(error.what()));
  }
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

nlohmann::json statistics(std::vector<double> values) {
  if (values.empty()) return nullptr;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double low = *least;
  const double high = *most;
  const size_t count = values.size();
  return {{"median", median(std::move(values))}, {"min", low}, {"max", high}, {"n", count}};
}

}  // namespace brigade::lab
