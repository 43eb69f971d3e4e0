// Popular claims about DDP that were measured to be wrong: what is advised and what to do instead, each as a
// program that runs. They are the rows of docs/reference/known-failures.md that say "Wrong".
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace brigade::lab {

// The outcome of a run.
struct Evidence {
  bool as_expected = false;
  std::string text;  // one line
};

// One program that tests a claim.
struct Trial {
  std::string name;  // "UNU-13", or a few words for what is measured
  std::string what;  // what it does, in one line
  std::function<Evidence()> run;
  // What PyTorch 2.15 does with the same program: for a planted fault, its letter in docs/reference/faults-torch.md; for a
  // measurement, the words of evidence/faults_torch/claims.json.
  std::string torch = {};
};

struct Claim {
  std::string row;  // in docs/reference/known-failures.md: "000.11"
  std::string said;
  std::vector<Trial> advised;  // what follows from the claim, or refutes it
  std::vector<Trial> instead;  // what to do or to know instead
};

// Sorted by row.
const std::vector<Claim>& all_claims();
// Throws ValueError that lists the rows.
const Claim& find_claim(const std::string& row);
// "an error, one wrong step later" for a letter; the text of a measurement is returned unchanged.
std::string in_words(const std::string& torch);

// --- Measurements of DDP on two ranks (threads), for claims that no planted fault covers.

// Whether a backward under find_unused_parameters that skips a head sends as much as one that uses all heads.
Evidence bytes_with_an_unused_head();
// Whether a head that was frozen before wrapping is not sent.
Evidence bytes_with_a_frozen_head();
// The names of parameters without a gradient on a rank that has not used a head that another rank has used.
Evidence names_without_gradient();
// What ddp.explain() reports about that head on that rank.
Evidence users_of_the_head();
// Whether buckets are launched before backward has run all its nodes.
Evidence buckets_that_left_in_backward();
// Whether gradients are equal on all ranks between backward and step.
Evidence gradients_before_step();

}  // namespace brigade::lab
