// A stream buffer that escapes control characters, and a bar that is redrawn when it has moved.
#include <brigade/lab/terminal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <unistd.h>

namespace brigade::lab {

// --- A stream buffer that escapes control characters on their way to another.

namespace {

constexpr unsigned char kFirstByte = 0xc2;  // in UTF-8, of U+0080 to U+00BF

void append_escaped(std::string& text, unsigned char byte) {
  constexpr const char* kDigits = "0123456789abcdef";
  for (const char c : {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]})
    text += c;
}

}  // namespace

Printable::~Printable() {
  put_begun();
  stream_.rdbuf(to_);
}

bool Printable::noted(bool done) {
  if (!done && reason_ == 0) reason_ = errno;
  return done;
}

bool Printable::put_begun() {
  if (!begun_) return true;
  begun_ = false;
  return to_->sputc(static_cast<char>(kFirstByte)) != traits_type::eof();
}

void Printable::append(std::string& text, unsigned char byte) {
  if (begun_) {
    begun_ = false;
    if (byte >= 0x80 && byte < 0xa0) return append_escaped(text, byte);
    text += static_cast<char>(kFirstByte);
  }
  if (byte == kFirstByte)
    begun_ = true;
  else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f)
    append_escaped(text, byte);
  else
    text += static_cast<char>(byte);
}

int Printable::overflow(int character) {
  if (character == traits_type::eof()) return sync() == 0 ? 0 : traits_type::eof();
  const char c = static_cast<char>(character);
  return xsputn(&c, 1) == 1 ? character : traits_type::eof();
}

std::streamsize Printable::xsputn(const char* text, std::streamsize count) {
  std::string printable;
  printable.reserve(static_cast<size_t>(count));
  for (std::streamsize i = 0; i < count; ++i)
    append(printable, static_cast<unsigned char>(text[i]));
  const auto size = static_cast<std::streamsize>(printable.size());
  return noted(to_->sputn(printable.data(), size) == size) ? count : 0;
}

int Printable::sync() { return noted(put_begun() && to_->pubsync() == 0) ? 0 : -1; }

// --- Redraws the bar when it has moved by a hundredth on a terminal, or by a tenth elsewhere.

ProgressBar::ProgressBar(std::string title, int64_t total, bool enabled)
    : title_(std::move(title)),
      total_(std::max<int64_t>(total, 1)),
      enabled_(enabled),
      terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (line_open_) std::fputc('\n', stderr);
}

void ProgressBar::update(int64_t done, const std::string& note) {
  if (!enabled_) return;
  const int64_t steps = terminal_ ? 100 : 10;
  const int64_t now = done * steps / total_;
  if (now == shown_) return;
  shown_ = now;
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(done * kWidth / total_);
  std::string bar(static_cast<size_t>(filled), '#');
  bar.resize(kWidth, '.');
  std::fprintf(stderr, "%s%s [%s] %3d %%  %s%s", terminal_ ? "\r" : "", title_.c_str(), bar.c_str(),
               static_cast<int>(done * 100 / total_), note.c_str(), terminal_ ? "\x1b[K" : "\n");
  line_open_ = terminal_;
  std::fflush(stderr);
}

}  // namespace brigade::lab
