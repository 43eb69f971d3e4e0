// Checks the depth by scanning the text, since the parser is not recursive and accepts any depth. Files are mapped.
#include <brigade/lab/json.h>

#include <brigade/core/detail/files.h>
#include <brigade/core/error.h>

#include <nlohmann/json.hpp>

namespace brigade::lab {

using nlohmann::json;

namespace {

// Whether brackets are nested deeper than `most`; brackets inside strings do not count.
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

// Finds the depth before the parser runs: with a parser callback, the parser would scan all values of a list for
// discarded ones whenever one of them ends.
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
