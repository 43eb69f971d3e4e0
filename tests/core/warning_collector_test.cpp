// A collector captures the warnings of its thread; the warning handler does not receive them.
#include <brigade/core/warning_collector.h>

#include <doctest/doctest.h>

#include <thread>

namespace brigade::test::warning_collector_test {

TEST_CASE("a collector keeps each warning of its thread once, also one that was told before") {
  std::vector<std::string> told;
  const auto before = set_warning_handler([&](const Warning& warning) { told.push_back(warning.message); });
  warn({"collector test: first", "advice"});
  {
    const WarningCollector outer;
    warn({"collector test: first", "advice"});
    warn({"collector test: first", "advice"});
    {
      const WarningCollector inner;
      tell({"collector test: second", "advice"});
      CHECK(inner.warnings().size() == 1);
    }
    std::thread([] { warn({"collector test: third", "advice"}); }).join();
    REQUIRE(outer.warnings().size() == 1);
    CHECK(outer.warnings()[0].message == "collector test: first");
    CHECK(outer.warnings()[0].advice == "advice");
  }
  // A warning that a collector captured does not count as reported: it reaches the handler when it is repeated.
  warn({"collector test: second", "advice"});
  set_warning_handler(before);
  CHECK(told == std::vector<std::string>{"collector test: first", "collector test: third", "collector test: second"});
}

}  // namespace brigade::test::warning_collector_test
