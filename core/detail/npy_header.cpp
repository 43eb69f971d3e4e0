// A parser of the few Python literals that the header of an .npy file holds, and the writer.
#include <brigade/core/detail/file_formats.h>

#include <brigade/core/error.h>
#include <brigade/core/shape.h>

#include <charconv>

namespace brigade::detail {
namespace {

// Reads only the part of Python that the format uses: a dictionary of a text, a truth value and a
// tuple of whole numbers.
class Reader {
 public:
  Reader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  NpyHeader read() {
    expect('{', "\"{\"");
    while (!take('}')) {
      const std::string key = text_value("a key");
      expect(':', "\":\"");
      read_field(key);
      if (take(',')) continue;
      expect('}', "\",\" or \"}\"");
      break;
    }
    skip_space();
    if (at_ != text_.size())
      throw IoError("{}: the header goes on with {} after its end; expected spaces", path_, here());
    constexpr const char* kFields[] = {"descr", "fortran_order", "shape"};
    for (int i = 0; i < 3; ++i) {
      if (!seen_[i])
        throw IoError("{}: the header has no '{}'; expected descr, fortran_order and shape", path_, kFields[i]);
    }
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail_field(const std::string& field, const std::string& expected) const {
    throw IoError("{}: '{}' is {}; expected {}", path_, field, here(), expected);
  }
  // The text at this position, for a message.
  std::string here() const { return at_ < text_.size() ? in_quotes(text_.substr(at_, 20)) : "the end of the header"; }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }
  bool take(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect(char wanted, const char* expected) {
    if (!take(wanted)) throw IoError("{}: the header has {} at byte {}; expected {}", path_, here(), at_ + 1, expected);
  }
  std::string text_value(const char* expected) {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos)
      throw IoError("{}: the header has {} at byte {}; expected {} in quotes", path_, here(), at_ + 1, expected);
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  void read_field(const std::string& key) {
    if (key == "descr") {
      once(0, key);
      skip_space();
      if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
        throw DTypeError("{}: 'descr' is {}, an array of records; expected elements of one type, such as '<f4'", path_,
                         here());
      }
      if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail_field(key, "a text such as '<f4'");
      header_.descr = text_value("a text");
    } else if (key == "fortran_order") {
      once(1, key);
      if (take_word("True")) {
        header_.fortran_order = true;
      } else if (!take_word("False")) {
        fail_field(key, "True or False");
      }
    } else if (key == "shape") {
      once(2, key);
      read_shape();
    } else {
      throw IoError("{}: the header has the key {}; expected descr, fortran_order and shape", path_, in_quotes(key));
    }
  }
  void once(int field, const std::string& key) {
    if (seen_[field]) throw IoError("{}: the header has '{}' twice; expected it once", path_, key);
    seen_[field] = true;
  }
  void read_shape() {
    const std::string expected = "a tuple of whole numbers from 0 to 9223372036854775807";
    if (!take('(')) fail_field("shape", expected);
    while (!take(')')) {
      skip_space();
      int64_t size = 0;
      const char* begin = text_.data() + at_;
      const auto [after, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail_field("shape", expected);
      if (header_.shape.size() == static_cast<size_t>(kMaxDims))  // as in NumPy
        throw IoError("{}: 'shape' has more than {} sizes; expected at most {}", path_, kMaxDims, kMaxDims);
      header_.shape.push_back(size);
      at_ += static_cast<size_t>(after - begin);
      const bool comma = take(',');
      if (!comma && header_.shape.size() == 1) fail_field("shape", "a comma after its only size, or more sizes");
      if (comma) continue;
      if (!take(')')) fail_field("shape", "\",\" or \")\" after a size");
      return;
    }
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  bool seen_[3] = {};
  NpyHeader header_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& path) { return Reader(text, path).read(); }

std::string npy_header_text(const NpyHeader& header) {
  std::string shape = "(";
  for (size_t i = 0; i < header.shape.size(); ++i)
    shape += (i ? ", " : "") + std::to_string(header.shape[i]);
  shape += header.shape.size() == 1 ? ",)" : ")";
  std::string text = "{'descr': '" + header.descr + "', 'fortran_order': " + (header.fortran_order ? "True" : "False") +
                     ", 'shape': " + shape + ", }";
  // Room for the size along which such a file may be extended, up to 21 digits.
  if (!header.shape.empty()) {
    const int64_t growing = header.fortran_order ? header.shape.back() : header.shape.front();
    text.append(21 - std::to_string(growing).size(), ' ');
  }
  return text;
}

}  // namespace brigade::detail
