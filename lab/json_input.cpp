// The parser itself needs no stack, so the depth is looked for in the text. Files are mapped.
#include <brigade/lab/json_input.h>

#include <brigade/core/detail/input_file.h>
#include <brigade/core/error.h>

#include <nlohmann/json.hpp>

#include <memory>

namespace brigade::lab {

using nlohmann::json;

namespace {

// Brackets within brackets, as they stand in the text; what stands in a string is none.
bool is_deeper_than(int64_t most, std::string_view text) {
  int64_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++i;
    } else if (c == '[' || c == '{') {
      if (++depth > most) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

// The depth is found before the parser runs: a callback that the parser asks at each value makes it go through all values of a list whenever one
// of them ends, to look for discarded ones.
json parse_json(std::string_view text) {
  if (is_deeper_than(kDeepestJson, text)) return json(json::value_t::discarded);
  return json::parse(text.begin(), text.end(), nullptr, false);
}

json read_json(const std::string& reader, const std::string& file) {
  return parse_json(read_text(reader, file).view());
}

FileText read_text(const std::string& reader, const std::string& file) {
  try {
    const detail::InputFile input(file);
    return {input.map(), static_cast<size_t>(input.size())};
  } catch (const IoError& error) {
    throw IoError("{}: {}", reader, error.what());
  }
}

}  // namespace brigade::lab
