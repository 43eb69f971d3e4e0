// Every planted fault and every control with parameters on devices: over NCCL (without GPUs, over its stand-in), or
// through host memory if the ranks have to share a device.
#include <brigade/core/device_runtime.h>
#include <brigade/lab/faults/diagnosis.h>

#include <test_part.h>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace brigade::test::faults_test {
namespace {

// Under the sanitizers, each program runs once.
#ifdef __SANITIZE_ADDRESS__
const std::vector<double> kBucketSizes{1e-4};
#else
const std::vector<double> kBucketSizes{25.0, 1e-4, 1e-6};
#endif

// Faults whose outcome on devices differs from the CPU, and the reason. All others behave as on the CPU.
struct Otherwise {
  std::string why;
  std::function<void(lab::Expectation&)> expect = {};
  bool before_devices = false;  // ends before the group is bound to devices
};
const std::map<std::string, Otherwise>& otherwise() {
  static const auto expect_no_operation = [](lab::Expectation& expected) { expected.op = ""; };
  static const Otherwise loss_not_looked_at{"nothing waits for the device to look for the operation",
                                            expect_no_operation};
  static const Otherwise models_differ{.why = "the models are compared first", .before_devices = true};
  static const std::map<std::string, Otherwise> table{
      {"SCL-08", loss_not_looked_at},
      {"SCL-16", loss_not_looked_at},
      {"PERF-08",
       {"gradients that are alike on all ranks are not looked for: only their norms are known, one backward later",
        [](lab::Expectation& expected) { expected.detected = false; }}},
      {"COL-12", models_differ},
      {"COL-18", models_differ},
      {"COL-19", models_differ},
      {"COL-20", models_differ},
      {"COL-21", models_differ},
      {"DIV-17", models_differ},
  };
  return table;
}

void check_all_on(int ranks) {
  const bool have_one_each = device_count(DeviceType::CUDA) >= ranks;
  const std::string way = have_one_each ? "nccl" : "threads";
  size_t index = 0, runs = 0;
  std::string skipped, listed;
  for (lab::Fault fault : lab::all_faults()) {
    if (!test::is_of_this_part(index++)) continue;
    const auto known = otherwise().find(fault.id);
    const bool is_otherwise = known != otherwise().end();
    if (is_otherwise && known->second.expect) known->second.expect(fault.expected);
    if (is_otherwise) listed += "\n" + fault.id + ": " + known->second.why;
    const std::string expected_way = is_otherwise && known->second.before_devices ? "threads" : way;
    for (const double bucket_mb : kBucketSizes) {
      // Faults that wait for a time-out do not depend on buckets.
      if (fault.timeout < std::chrono::seconds(30) && bucket_mb != kBucketSizes.front()) continue;
      CAPTURE(bucket_mb);
      const lab::Diagnosis found =
          lab::diagnose(fault, {.backend = "threads", .ranks = ranks, .bucket_mb = bucket_mb, .device = "cuda"});
      if (found.skipped) {
        if (bucket_mb == kBucketSizes.front()) skipped += "\n" + fault.id + ": " + found.why_not;
        continue;
      }
      CHECK_MESSAGE(found.passed, fault.id << ": " << found.why_not << "\n" << found.text);
      CHECK_MESSAGE(found.group == expected_way, fault.id << " went over " << found.group);
      ++runs;
    }
  }
  MESSAGE(runs, " runs on ", ranks, " ranks over ", way, "\nleft out:", skipped,
          "\notherwise than on the CPU:", listed);
}

}  // namespace

TEST_CASE("2 ranks on devices: every fault gets its verdict and its fix works, every control stays silent") {
  check_all_on(2);
}

TEST_CASE("4 ranks on devices: every fault gets its verdict and its fix works, every control stays silent") {
  check_all_on(4);
}

}  // namespace brigade::test::faults_test
