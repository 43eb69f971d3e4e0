// The claims, row by row, with the planted faults and measurements that decide them.
#include <brigade/lab/claims/claim.h>

#include <brigade/core/error.h>
#include <brigade/lab/faults/diagnosis.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace brigade::lab {
namespace {

// The verdict, in one line.
std::string outcome_of(const Fault& fault, const Diagnosis& found) {
  if (!found.passed) return "NOT as expected: " + found.why_not;
  if (!found.detected) return "runs, with equal parameters on all ranks; nothing is reported";
  const Expectation& expected = fault.expected;
  if (expected.kind == "error") return found.text.substr(0, found.text.find('\n'));
  const bool warns = expected.severity != dist::Severity::Error;
  return fmt::format("{} ({}){}", expected.kind, expected.cause, warns ? ", a warning" : "");
}

Trial planted(const char* id, const char* torch) {
  const auto run = [id] {
    const Fault& fault = find_fault(id);
    const Diagnosis found = diagnose(fault, {});
    return Evidence{found.passed, outcome_of(fault, found)};
  };
  return {id, find_fault(id).title, run, torch};
}

std::vector<Claim> make_claims() {
  return {
      {"000.11",
       "make the images twice in place of detach()",
       {planted("UNU-13", "L")},
       {planted("OK-09", "ok"), planted("OK-08", "ok")}},
      {"001.3",
       "find_unused_parameters makes DDP skip the synchronisation of these parameters",
       {{"bytes", "what a backward sends that leaves a head out", &bytes_with_an_unused_head,
         "a backward without h2: 4 collectives, 204 B; with it: 4 collectives, 204 B"}},
       {{"frozen", "what is frozen before wrapping", &bytes_with_a_frozen_head,
         "h2 frozen before wrapping: 2 collectives, 128 B; trained: 3 collectives, 192 B"}}},
      {"001.5",
       "the parameters whose grad is None were not used",
       {{"names", "names with `grad is None` behind a backward", &names_without_gradient,
         "rank 1 has not used h2; its names without a gradient: []"}},
       {{"explain", "ddp.explain()", &users_of_the_head,
         "has no explain(); _get_ddp_logging_data() on rank 1: unused_parameter_size 0 in iteration 10"}}},
      {"001.7",
       "unused_output.sum().backward(retain_graph=True) lets every output take part",
       {planted("TWI-02", "E"), planted("TWI-03", "L")},
       {planted("OK-16", "ok")}},
      {"002.5",
       "DDP marks the parameters that were used, and synchronises only those",
       {{"bytes", "what a backward sends that leaves a head out", &bytes_with_an_unused_head,
         "a backward without h2: 4 collectives, 204 B; with it: 4 collectives, 204 B"}},
       {{"frozen", "what is frozen before wrapping", &bytes_with_a_frozen_head,
         "h2 frozen before wrapping: 2 collectives, 128 B; trained: 3 collectives, 192 B"}}},
      {"003.6",
       "configure the scaling for each optimizer: update() after each step",
       {planted("AMP-03", "s")},
       {planted("OK-31", "ok")}},
      {"003.7",
       "the loop that is shown as best practice: no zero_grad, schedules step by the rank's own loss",
       {planted("SCL-07", "s"), planted("DIV-15", "S")},
       {planted("OK-31", "ok")}},
      {"004.5",
       "the wrapper covers teacher and student, the optimizer the student alone: that is the fault",
       {planted("OK-14", "ok")},
       {planted("DIV-01", "S")}},
      {"004.6",
       "gradients are synchronised between backward and step",
       {{"timeline", "when the buckets leave", &buckets_that_left_in_backward,
         "2 of 3 buckets left before backward had computed the last gradient, 3 before it returned"}},
       {{"gradients", "what is there before a step", &gradients_before_step,
         "behind backward(), before any step, gradients are equal to the bit on the ranks"}}},
      {"004.8",
       "all_reduce(loss) behind backward synchronises the ranks",
       {planted("DIV-02", "S")},
       {planted("OK-15", "ok"), planted("OK-14", "ok")}},
  };
}

}  // namespace

const std::vector<Claim>& all_claims() {
  static const std::vector<Claim> claims = make_claims();
  return claims;
}

const Claim& find_claim(const std::string& row) {
  std::vector<std::string> known;
  for (const Claim& claim : all_claims()) {
    if (claim.row == row) return claim;
    known.push_back(claim.row);
  }
  throw ValueError("no claim {}; known are {} (docs/reference/known-failures.md)", row, fmt::join(known, ", "));
}

std::string in_words(const std::string& torch) {
  if (torch == "E") return "an error in the same iteration";
  if (torch == "L") return "an error, one wrong step later";
  if (torch == "S") return "silent, and the ranks differ";
  if (torch == "s") return "silent, and the numbers are wrong";
  if (torch == "ok") return "right";
  return torch;
}

}  // namespace brigade::lab
