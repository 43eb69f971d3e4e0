// JSON: read from untrusted sources, and the parts that every command can write.
#pragma once

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brigade::lab {

// --- Reads JSON from untrusted sources.

// Copying or printing a deeper value would overflow the stack.
inline constexpr int64_t kDeepestJson = 64;

// Returns a discarded value (is_discarded()) when the text is not JSON, or is nested deeper.
nlohmann::json parse_json(std::string_view text);
// The same for a file. Throws like read_text().
nlohmann::json read_json(const std::string& reader, const std::string& file);

// A file in memory.
struct FileText {
  std::shared_ptr<char> text;
  size_t size = 0;
  std::string_view view() const { return {text.get(), size}; }
};
// Throws IoError "READER: cannot read FILE: why" (reader: "explain") when the file cannot be read. Only regular
// files are read, since a pipe may block and a device may be endless.
FileText read_text(const std::string& reader, const std::string& file);

// --- Builds JSON values from the calls of a streaming parser.

// When a key occurs twice, the second value counts, as with json::parse.
class JsonBuilder {
 public:
  void key(std::string& key) { key_ = std::move(key); }
  void add(nlohmann::json value) { *place() = std::move(value); }
  // Starts an empty object or list; following values belong to it until end().
  void start(nlohmann::json::value_t type) {
    nlohmann::json* const value = place();
    *value = type;
    open_.push_back(value);
  }
  void end() { open_.pop_back(); }
  // The value, after every start() has been ended.
  nlohmann::json take() { return std::move(value_); }

 private:
  // Elements do not move while one of them is open: their list grows only after it has ended.
  nlohmann::json* place() {
    if (open_.empty()) return &value_;
    nlohmann::json& around = *open_.back();
    return around.is_array() ? &around.emplace_back() : &around[key_];
  }

  nlohmann::json value_;
  std::vector<nlohmann::json*> open_;
  std::string key_;
};

// --- Parts of the JSON that every command can write (docs/cli.md), and a check of its output file.

// {"command", "version", "commit", "machine", "results": []}
nlohmann::json json_envelope(const std::vector<std::string>& command);
// Call it before the work. Throws ValueError if `path` ("" means no file) cannot be written. Leaves an existing
// file unchanged.
void check_output(const std::string& path);
// {"median", "min", "max", "n"}
nlohmann::json statistics(std::vector<double> values);
double median(std::vector<double> values);
// The words of this process's command line.
std::vector<std::string> command_line();

}  // namespace brigade::lab
