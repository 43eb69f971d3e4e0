// Redraws the bar when it has moved by a hundredth on a terminal, or by a tenth elsewhere.
#include <brigade/lab/progress_bar.h>

#include <algorithm>
#include <cstdio>

#include <unistd.h>

namespace brigade::lab {

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
