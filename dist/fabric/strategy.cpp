// The known strategies and the DDP options that each implies.
#include <brigade/dist/fabric/strategy.h>

#include <array>

namespace brigade::dist {

namespace {

struct NamedStrategy {
  const char* name;
  bool find_unused_parameters = false;
  bool static_graph = false;
};

constexpr std::array<NamedStrategy, 5> kStrategies{
    {{"ddp"},
     {.name = "ddp_find_unused_parameters_true", .find_unused_parameters = true},
     {"ddp_find_unused_parameters_false"},
     {.name = "ddp_static_graph", .static_graph = true},
     {"auto"}}};

}  // namespace

Strategy::Strategy(const std::string& name) : name_(name) {
  for (const NamedStrategy& each : kStrategies) {
    if (name != each.name) continue;
    options_.find_unused_parameters = each.find_unused_parameters;
    options_.static_graph = each.static_graph;
    return;
  }
  throw ValueError("unknown strategy '{}'; known are {}", name, strategy_names());
}

std::string strategy_names() {
  std::string names;
  for (const NamedStrategy& each : kStrategies)
    names += std::string(names.empty() ? "" : ", ") + each.name;
  return names;
}

}  // namespace brigade::dist
