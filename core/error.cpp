// Composes the message of an error: its text, followed by the user's line; places that can be compared and sent; errors
// of indices.
#include <brigade/core/error.h>

#include <brigade/core/index_error.h>
#include <brigade/core/place.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

namespace brigade {

// --- Composes the message of an error: its text, followed by the user's line.

namespace {

// The file as messages name it.
std::string_view file_of(const std::source_location& where) noexcept {
  std::string_view file = where.file_name();
  // A build can choose where the shown path begins (-fmacro-prefix-map=/home/me/project/=/./).
  constexpr std::string_view kFromHere = "/./";
  if (const size_t mark = file.rfind(kFromHere); mark != std::string_view::npos)
    return file.substr(mark + kFromHere.size());
  // Otherwise two components tell files apart without drowning the message in directories.
  const size_t slash = file.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return file;
  const size_t parent = file.rfind('/', slash - 1);
  return parent == std::string_view::npos ? file : file.substr(parent + 1);
}

}  // namespace

std::string to_string(const std::source_location& where) {
  if (where.line() == 0) return "";
  return std::string(file_of(where)) + ":" + std::to_string(where.line());
}

namespace detail {
namespace {

// 100000 rather than 1e+05.
template <class T>
std::string shortest(T value) {
  const T size = std::abs(value);
  const bool is_usual = value == 0 || (size >= T(1e-4) && size < T(1e16));
  char text[64];
  const auto format = is_usual ? std::chars_format::fixed : std::chars_format::general;
  return {text, std::to_chars(std::begin(text), std::end(text), value, format).ptr};
}

}  // namespace

std::string in_words(float value) { return shortest(value); }
std::string in_words(double value) { return shortest(value); }

bool says(std::string_view message, std::string_view word) {
  const auto in_word = [&](size_t i) {
    return i < message.size() && (std::isalnum(static_cast<unsigned char>(message[i])) || message[i] == '_');
  };
  for (size_t at = message.find(word); at != message.npos; at = message.find(word, at + 1))
    if (!(at > 0 && in_word(at - 1)) && !in_word(at + word.size())) return true;
  return false;
}

std::string fill_in(std::string_view text, std::initializer_list<std::string> words) {
  std::string result;
  for (const std::string& word : words) {
    const size_t place = text.find("{}");
    result.append(text.substr(0, place)).append(word);
    text.remove_prefix(place + 2);
  }
  return result.append(text);
}

}  // namespace detail

namespace {

std::string with_place(const std::string& message, const std::source_location& where) {
  const std::string place = to_string(where);
  return place.empty() || detail::says(message, place) ? message : message + " (called at " + place + ")";
}

}  // namespace

Error::Error(const std::string& message, std::source_location where)
    : std::runtime_error(with_place(message, where)), where_(where) {}

// --- Converts a location that the compiler filled in to a place that can be compared and sent.

Place::Place(std::string file, uint32_t line) : file(std::move(file)), line(line) {}

Place::Place(const SourceLocation& where)
    : file(where.line() != 0 ? file_of(where) : std::string_view()), line(where.line()) {}

std::string to_string(const Place& place) { return place ? place.file + ":" + std::to_string(place.line) : ""; }

std::string with_short_places(std::string text) {
  constexpr std::string_view kSources[] = {".cpp", ".cc", ".cxx", ".cu", ".h", ".hpp", ".cuh"};
  std::string latest;
  for (size_t begin = 0; begin < text.size(); begin = text.find_first_of(" (\n", begin)) {
    begin = std::min(text.size(), text.find_first_not_of(" (\n", begin));
    const size_t colon = text.find_first_of(": (\n", begin);
    if (colon >= text.size() || text[colon] != ':') continue;
    const std::string file = text.substr(begin, colon - begin);
    const bool is_source = std::ranges::any_of(kSources, [&](std::string_view each) { return file.ends_with(each); });
    if (!is_source || colon + 1 == text.size() || std::isdigit(static_cast<unsigned char>(text[colon + 1])) == 0)
      continue;
    if (file == latest) text.replace(begin, colon + 1 - begin, "line ");
    latest = file;
  }
  return text;
}

bool is_in_standard_library(const SourceLocation& where) {
  const std::string_view file = where.file_name();
  return file.find("/include/c++/") != std::string_view::npos || file.find("/c++/v1/") != std::string_view::npos;
}

// --- Checks many indices in one loop without branches, and looks for the bad one afterwards.

IndexError index_error(const IndexRole& role, int64_t index, int64_t position, int64_t count) {
  return IndexError("{}: {} {} at position {} is not a {} 0..{}", role.op, role.index, index, position, role.what,
                    count - 1);
}

void check_indices(const IndexRole& role, const int64_t* indices, int64_t length, int64_t count) {
  // Without a branch the loop vectorizes; the bad index is looked for only if there is one.
  bool all_good = true;
  for (int64_t i = 0; i < length; ++i)
    all_good &= static_cast<uint64_t>(indices[i]) < static_cast<uint64_t>(count);
  if (all_good) return;
  for (int64_t i = 0; i < length; ++i) {
    if (indices[i] < 0 || indices[i] >= count) throw index_error(role, indices[i], i, count);
  }
}

}  // namespace brigade
