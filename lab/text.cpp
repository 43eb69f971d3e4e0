// Encodes the characters, and splits off the end of the text for testing.
#include <brigade/lab/data_path.h>

#include <brigade/core/error.h>
#include <brigade/data/detail/image_files.h>

#include <algorithm>
#include <array>
#include <set>

namespace brigade::lab {

std::string Text::letters_of(const std::vector<int64_t>& codes) const {
  std::string letters;
  for (const int64_t code : codes)
    letters += alphabet.at(static_cast<size_t>(code));
  return letters;
}

Text load_text(const std::string& path) {
  const std::string letters = data::detail::read_gzip(path, size_t{64} << 20, "a text of about 0.5 MiB");
  if (letters.empty()) throw IoError("{} holds no text", path);
  Text text;
  const std::set<char> occurring(letters.begin(), letters.end());
  text.alphabet.assign(occurring.begin(), occurring.end());
  std::array<int64_t, 256> code{};
  for (size_t i = 0; i < text.alphabet.size(); ++i)
    code[static_cast<unsigned char>(text.alphabet[i])] = static_cast<int64_t>(i);
  std::vector<int64_t> codes(letters.size());
  std::transform(letters.begin(), letters.end(), codes.begin(),
                 [&](char letter) { return code[static_cast<unsigned char>(letter)]; });
  const auto end_of_train = codes.begin() + static_cast<int64_t>(codes.size() / 10 * 9);
  text.train.assign(codes.begin(), end_of_train);
  text.test.assign(end_of_train, codes.end());
  return text;
}

std::string text_path() { return data_path("paradise_lost.txt.gz", "text"); }

}  // namespace brigade::lab
