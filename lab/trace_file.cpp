// Reads a trace and looks whether it is one.
#include <brigade/lab/trace_file.h>

#include <brigade/core/error.h>
#include <brigade/lab/json_input.h>

#include <nlohmann/json.hpp>

#include <utility>

namespace brigade::lab {

namespace {

using nlohmann::json;

// Of a row of results: the section "brigade", with the events in it. Events are many: they are moved.
json trace_of(json facts) {
  json trace = json::object();
  trace["traceEvents"] = std::move(facts.at("traceEvents"));
  facts.erase("traceEvents");
  trace["brigade"] = std::move(facts);
  return trace;
}

}  // namespace

json read_trace(const std::string& command, const std::string& file) {
  json found = read_json(command, file);
  try {
    if (found.contains("results")) return trace_of(std::move(found.at("results").at(0)));
    static_cast<void>(found.at("brigade"));
    return found;
  } catch (const json::exception& error) {
    throw ValueError("{}: {} is neither a trace of Brigade nor what explain --json writes: {}", command, file,
                     error.what());
  }
}

}  // namespace brigade::lab
