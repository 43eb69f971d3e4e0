// What a wrapper keeps for its user: when things happened, and the warnings and notes.
#pragma once

#include <brigade/core/warning.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/diagnosis/advisories.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/timeline/timeline.h>

#include <string>
#include <vector>

namespace brigade::dist {

// Errors that every rank throws. A program may catch them without a word: rank 0 prints the second in a row.
class CaughtErrors {
 public:
  void add(const std::string& text, int rank) {
    if (++in_a_row_ != 2 || rank != 0) return;
    tell({"Two errors in a row were caught, and the program goes on. The second:\n" + text,
          "let the first one end the job, or print it"});
  }
  void end_row() noexcept { in_a_row_ = 0; }

 private:
  int in_a_row_ = 0;
};

struct WrapperLog {
  explicit WrapperLog(int rank) noexcept : advisories(rank) {}

  Timeline timeline;
  Advisories advisories;
  // Per bucket of the latest reduced backward: kernels::probe() of the communication hook's result divided by the norm,
  // for the ranks to compare. Empty if they may differ.
  std::vector<double> hook_probes;
  BegunForwards forwards;
  CaughtErrors of_backwards, of_steps;
};

}  // namespace brigade::dist
