// Claims about DDP that are passed on, and that were measured to be wrong: what is advised, and what to do in its place,
// each as a program that runs. They are the rows of docs/known-failures.md that say "Wrong".
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace brigade::lab {

// What came out of a run.
struct Evidence {
  bool as_expected = false;
  std::string text;  // one line
};

// One program that bears on a claim.
struct Trial {
  std::string name;  // "UNU-13", or what is measured in a few words
  std::string what;  // it does, in one line
  std::function<Evidence()> run;
  // What PyTorch 2.15 does with the same program: of a planted fault its letter in docs/faults-torch.md, of what is measured
  // the words of bench/faults_torch/claims.json.
  std::string torch = {};
};

struct Claim {
  std::string row;  // of docs/known-failures.md: "000.11"
  std::string said;
  std::vector<Trial> advised;  // what follows from it, or shows that it is not so
  std::vector<Trial> instead;  // what to do, or to know, in its place
};

// In the order of their rows.
const std::vector<Claim>& all_claims();
// That of a row. Throws ValueError that lists the rows.
const Claim& find_claim(const std::string& row);
// "an error, one wrong step later" for a letter; what was measured is in words.
std::string in_words(const std::string& torch);

}  // namespace brigade::lab
