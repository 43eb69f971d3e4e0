// Reads what a trace shows: from events that begin and end to slices of time.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace brigade::lab {

struct TraceSlice {
  int rank = 0;
  std::string name;
  std::string category;
  double begin = 0;  // microseconds
  double end = 0;
  bool instant = false;  // a moment: its end is its begin
  // Those of its begin, in the trace: a trace may hold a million.
  const nlohmann::json* arguments = nullptr;
};

// In the order in which they end; what is asynchronous among the others. The trace has to outlive
// them. Throws ValueError for an event that ends and never began or begins and never ends,
// nlohmann's error for one that lacks something.
std::vector<TraceSlice> slices_of(const nlohmann::json& trace);
std::vector<TraceSlice> slices_of(nlohmann::json&& trace) = delete;

}  // namespace brigade::lab
