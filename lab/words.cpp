// Parses with the standard library, and computes edit distances.
#include <brigade/lab/options.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>
#include <sstream>
#include <system_error>
#include <utility>

namespace brigade::lab {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;)
    words.push_back(word);
  return words;
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

namespace {

char in_small(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

size_t edits_between(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (in_small(a[i - 1]) != in_small(b[j - 1]));
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> nearest_words(const std::string& word, const std::vector<std::string>& known, size_t most) {
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& each : known)
    near.emplace_back(edits_between(word, each), each);
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  std::vector<std::string> nearest;
  for (size_t i = 0; i < std::min(most, near.size()); ++i)
    nearest.push_back(near[i].second);
  return nearest;
}

}  // namespace brigade::lab
