// The terminal: control characters in printed names, and a progress bar.
#pragma once

#include <cstdint>
#include <ostream>
#include <streambuf>
#include <string>

namespace brigade::lab {

// --- Keeps control characters in printed names and texts, which may come from files, from reaching the terminal.

// During its lifetime, characters written to `stream` that control a terminal (all of ASCII's except newline and
// tab, and Unicode's from U+0080 to U+009F) are written as \x1b, \x9b, ...; all others unchanged. A text written in
// one call is passed on in one call: standard error has no buffer of its own, and the ranks of a job share it.
class Printable : public std::streambuf {
 public:
  explicit Printable(std::ostream& stream) : stream_(stream), to_(stream.rdbuf(this)) {}
  ~Printable() override;
  Printable(const Printable&) = delete;
  Printable& operator=(const Printable&) = delete;

  // The errno of the first failed write; 0 while none has failed.
  int reason() const noexcept { return reason_; }

 protected:
  int overflow(int character) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  void append(std::string& text, unsigned char byte);
  bool noted(bool done);
  bool put_begun();

  std::ostream& stream_;
  std::streambuf* to_;
  int reason_ = 0;
  bool begun_ = false;  // the first byte of U+0080 to U+00BF is held back
};

// --- A progress bar on standard error: a live line on a terminal, one line per tenth elsewhere, nothing when quiet.

class ProgressBar {
 public:
  // `enabled`: true on rank 0 without --quiet.
  ProgressBar(std::string title, int64_t total, bool enabled);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `note` is shown after the bar ("loss 0.231").
  void update(int64_t done, const std::string& note);

 private:
  std::string title_;
  int64_t total_;
  bool enabled_;
  bool terminal_;
  int64_t shown_ = -1;  // last tenth (or percent on a terminal) that was drawn
  bool line_open_ = false;
};

}  // namespace brigade::lab
