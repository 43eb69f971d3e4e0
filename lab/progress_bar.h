// A progress bar on standard error: a live line on a terminal, one line per tenth elsewhere,
// nothing when quiet.
#pragma once

#include <cstdint>
#include <string>

namespace brigade::lab {

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
