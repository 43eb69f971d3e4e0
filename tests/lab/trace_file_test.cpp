// Traces are read event by event, and other files are rejected.
#include <brigade/core/error.h>
#include <brigade/lab/trace_file.h>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace brigade::test::trace_file_test {

using lab::trace_of_text;

std::string trace_with(const std::string& events) {
  return R"({"traceEvents": [)" + events + R"(], "brigade": {"module": "Net"}})";
}

TEST_CASE("slices come in the order in which they end, with what their begin said") {
  const lab::Trace trace = trace_of_text(trace_with(R"(
    {"name": "rank 3", "ph": "M", "pid": 3, "args": {"name": "rank 3"}},
    {"name": "backward", "ph": "B", "pid": 3, "tid": 100003, "ts": 1.5, "args": {"iteration": 7, "where": ["a.cpp", {"line": 2}]}},
    {"name": "bucket 0", "ph": "b", "cat": "collective", "pid": 3, "tid": 100003, "id2": {"local": "0x1"}, "ts": 2, "args": {}},
    {"name": "old", "ph": "b", "pid": 3, "id": 1, "ts": 2.25, "args": {"iteration": 1}},
    {"name": "fc.weight", "ph": "i", "s": "t", "pid": 3, "tid": 200003, "ts": 2.5, "args": {"iteration": 7}},
    {"ts": 3, "ph": "E", "pid": 3, "tid": 100003, "name": "backward"},
    {"name": "old", "ph": "e", "pid": 3, "id": 1, "ts": 4},
    {"name": "bucket 0", "ph": "e", "pid": 3, "tid": 9, "id2": {"more": [1], "local": "0x1"}, "ts": 5, "args": {"unread": {"local": 2}}},
    {"name": "counter", "ph": "C", "pid": 3, "ts": 6})"));
  CHECK(trace.facts == nlohmann::json{{"module", "Net"}});
  REQUIRE(trace.slices.size() == 4);
  const std::vector<std::string> names = {"fc.weight", "backward", "old", "bucket 0"};
  const std::vector<double> begins = {2.5, 1.5, 2.25, 2}, ends = {2.5, 3, 4, 5};
  for (size_t i = 0; i < names.size(); ++i) {
    CAPTURE(i);
    CHECK(trace.slices[i].name == names[i]);
    CHECK(trace.slices[i].rank == 3);
    CHECK(trace.slices[i].begin == begins[i]);
    CHECK(trace.slices[i].end == ends[i]);
    CHECK(trace.slices[i].instant == (i == 0));
    CHECK(trace.slices[i].category == (i == 3 ? "collective" : ""));
  }
  CHECK(*trace.slices[1].arguments == nlohmann::json::parse(R"({"iteration": 7, "where": ["a.cpp", {"line": 2}]})"));
  CHECK(*trace.slices[3].arguments == nlohmann::json::object());
}

TEST_CASE("slices that follow each other share arguments that are equal") {
  std::string events;
  for (const int iteration : {1, 1, 2})
    events += (events.empty() ? "" : ",") +
              std::string(R"({"name": "w", "ph": "i", "pid": 0, "ts": 1, "args": {"iteration": )") +
              std::to_string(iteration) + "}}";
  const lab::Trace trace = trace_of_text(trace_with(events));
  REQUIRE(trace.slices.size() == 3);
  CHECK(trace.slices[0].arguments == trace.slices[1].arguments);
  CHECK(trace.slices[2].arguments->at("iteration") == 2);
}

TEST_CASE("what explain --json writes is its first row, whatever stands before the events or after them") {
  for (
      const char* text :
      {R"({"command": ["traceEvents"], "results": [{"module": "Net", "traceEvents": [], "ranks": 2}, {"traceEvents": [1]}]})",
       R"({"results": [{"traceEvents": [], "ranks": 2, "module": "Net"}], "traceEvents": [], "brigade": 3})"}) {
    CAPTURE(text);
    CHECK(trace_of_text(text).facts == nlohmann::json{{"module", "Net"}, {"ranks", 2}});
  }
}

TEST_CASE("an event that lacks something is named with its number") {
  const std::string whole = R"("name": "w", "ph": "i", "pid": 0, "tid": 1, "ts": 1, "args": {})";
  for (const auto& [event, wrong] : std::vector<std::pair<std::string, std::string>>{
           {R"("name": "w", "pid": 0, "tid": 1, "ts": 1, "args": {})", R"("ph")"},
           {R"("ph": "i", "pid": 0, "tid": 1, "ts": 1, "args": {})", R"("name")"},
           {R"("name": "w", "ph": "i", "pid": "0", "tid": 1, "ts": 1, "args": {})", R"("pid")"},
           {R"("name": "w", "ph": "i", "pid": 0, "tid": 1, "ts": [1], "args": {})", R"("ts")"},
           {R"("name": "w", "ph": "i", "pid": 0, "tid": 1, "ts": 1)", R"("args")"},
           {R"("name": "w", "ph": "B", "pid": 0, "ts": 1, "args": {})", R"("tid")"}}) {
    CAPTURE(event);
    const std::string message = "trace: event 2 of the trace lacks " + wrong;
    CHECK_THROWS_WITH_AS(trace_of_text(trace_with("{" + whole + "}, {" + event + "}")), message.c_str(), ValueError);
  }
  CHECK_THROWS_WITH_AS(trace_of_text(trace_with("3")), "trace: an event of the trace is no object", ValueError);
  CHECK_THROWS_WITH_AS(trace_of_text(trace_with("[{}]")), "trace: an event of the trace is no object", ValueError);
}

TEST_CASE("what is no trace, is cut off, or is nested too deeply is refused") {
  const std::string whole = trace_with(R"({"name": "w", "ph": "i", "pid": 0, "ts": 1, "args": {}})");
  CHECK(trace_of_text(whole).slices.size() == 1);
  for (size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK_THROWS_WITH_AS(trace_of_text(whole.substr(0, length)), doctest::Contains("it is no JSON from byte"),
                         ValueError);
  }
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  const auto event = [&](size_t depth) {
    return trace_with(R"({"name": "w", "ph": "i", "pid": 0, "ts": 1, "s": )" + nested(depth) + R"(, "args": )" +
                      nested(depth) + "}");
  };
  CHECK(trace_of_text(event(61)).slices.size() == 1);
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {event(62), "it is nested deeper than 64 times"},
           {event(3'000'000), "it is nested deeper than 64 times"},
           {R"({"traceEvents": [], "brigade": )" + nested(64) + "}", "it is nested deeper than 64 times"},
           {whole + " 2", "it is no JSON from byte"},
           {R"({"traceEvents": [], "brigade": NaN})", "it is no JSON from byte"},
           {R"({"traceEvents": [], "brigade": 1e999})", "it is no JSON from byte"},
           {"{\"traceEvents\": [], \"brigade\": \"\xff\"}", "it is no JSON from byte"},
           {R"({"traceEvents": {}, "brigade": {}})", "it has no list \"traceEvents\""},
           {R"({"brigade": {}})", "it has no list \"traceEvents\""},
           {R"({"traceEvents": []})", "brigade"},
           {R"({"results": []})", "is neither a trace of Brigade nor what explain --json writes: "},
           {"[]", "is neither a trace of Brigade nor what explain --json writes: "},
           {"2", "is neither a trace of Brigade nor what explain --json writes: "}}) {
    CAPTURE(text.substr(0, 100));
    CHECK_THROWS_WITH_AS(trace_of_text(text), doctest::Contains(why.c_str()), ValueError);
  }
}

TEST_CASE("a very long text is read") {
  const std::string word(5'000'000, 'x');
  const lab::Trace trace =
      trace_of_text(trace_with(R"({"name": ")" + word + R"(", "ph": "i", "pid": 0, "ts": 1, "args": null})"));
  REQUIRE(trace.slices.size() == 1);
  CHECK(trace.slices[0].name.size() == word.size());
}

}  // namespace brigade::test::trace_file_test
