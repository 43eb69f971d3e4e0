// Rows of docs/reference/known-failures.md that a planted fault or a control covers: each gives its verdict, and the advice of
// the verdict works. Other claims about DDP: tests/dist/known_failures_cases.cpp.
#include <brigade/lab/faults/diagnosis.h>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace brigade::test::known_failures_test {

struct Row {
  const char* number;
  std::vector<const char*> faults;
};

TEST_CASE("[rows that faults and controls stand for] each comes to its verdict, and its fix works") {
  const std::vector<Row> rows{
      {"[000.1]", {"UNU-12"}},
      {"[000.4]", {"PERF-03", "OK-25"}},
      {"[000.5]", {"UNU-12", "OK-08"}},
      {"[000.9]", {"OK-07", "PERF-01"}},
      {"[000.10]", {"OK-07"}},
      {"[000.11]", {"UNU-13", "OK-09"}},
      {"[001.2]", {"UNU-04"}},
      {"[001.6]", {"UNU-11", "OK-16"}},
      {"[001.7]", {"TWI-02", "TWI-03"}},
      {"[002.3]", {"UNU-01"}},
      {"[002.4]", {"UNU-15", "UNU-17"}},
      {"[003.3]", {"AMP-01", "AMP-02"}},
      {"[003.4]", {"AMP-01"}},
      {"[003.6]", {"AMP-03", "OK-31"}},
      {"[003.7]", {"SCL-07", "DIV-15"}},
      {"[004.1]", {"DIV-01"}},
      {"[004.3]", {"OK-14", "DIV-01"}},
      {"[004.5]", {"OK-14"}},
      {"[004.7]", {"OK-15"}},
      {"[004.8]", {"DIV-02"}},
  };
  for (const Row& row : rows) {
    for (const char* id : row.faults) {
      const lab::Diagnosis found = lab::diagnose(lab::find_fault(id), {});
      CHECK_MESSAGE(found.passed, row.number << " " << id << ": " << found.why_not << "\n" << found.text);
    }
  }
}

TEST_CASE("[002.3] the phrase that people search for stands in the error") {
  const lab::Diagnosis found = lab::diagnose(lab::find_fault("UNU-01"), {});
  CHECK(found.text.find("Expected to have finished reduction in the prior iteration before starting a new one") !=
        std::string::npos);
}

TEST_CASE("[003.3] so does the scaler's") {
  const lab::Diagnosis found = lab::diagnose(lab::find_fault("AMP-01"), {});
  CHECK(found.text.find("Attempted unscale_ but _scale is None") != std::string::npos);
}

}  // namespace brigade::test::known_failures_test
