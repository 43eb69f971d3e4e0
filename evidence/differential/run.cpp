// Executes the lines of a program and collects results.
#include "differential/run.h"

#include "differential/step.h"

#include <brigade/core/error.h>

namespace brigade::differential {
namespace {

std::string kind_of(const Error& error) {
  if (dynamic_cast<const ShapeError*>(&error)) return "ShapeError";
  if (dynamic_cast<const DTypeError*>(&error)) return "DTypeError";
  if (dynamic_cast<const DeviceError*>(&error)) return "DeviceError";
  if (dynamic_cast<const IndexError*>(&error)) return "IndexError";
  if (dynamic_cast<const ValueError*>(&error)) return "ValueError";
  if (dynamic_cast<const AutogradError*>(&error)) return "AutogradError";
  if (dynamic_cast<const OutOfMemoryError*>(&error)) return "OutOfMemoryError";
  return "Error";
}

// Arguments may contain names of tensors, too.
bool all_set(const Session& session, const Line& line) {
  std::vector<std::string> needed = line.in;
  if (line.args.contains("gradient")) needed.push_back(line.args["gradient"]);
  for (const std::string& name : needed)
    if (!name.empty() && !session.variables.contains(name)) return false;
  return true;
}

// What is malformed about a line, as opposed to invalid in what it asks for; "" if nothing is.
std::string how_malformed(const Arguments& args, const std::string& message) {
  for (const char* phrase : {"the operation needs the argument", "argument '", "the operation takes an input"})
    if (message.starts_with(phrase)) return message;
  if (message.empty())
    for (const std::string& name : args.unused())
      if (name != "gradient") return "the operation did not look at the argument '" + name + "'";
  return "";
}

Outputs call(Session& session, const Line& line, const Arguments& args) {
  std::vector<Tensor> tensors;
  for (const std::string& name : line.in)
    tensors.push_back(name.empty() ? Tensor() : session.variables.at(name));
  const Inputs in(std::move(tensors));
  if (const Step step = find_step(line.op)) return step({session, line, in, args});
  if (const auto operation = lab::reference::find_operation(line.op)) return operation(in, args);
  throw ValueError("argument 'op': '" + line.op + "' is not known");
}

void keep(Session& session, const Line& line, const Outputs& outputs) {
  for (size_t i = 0; i < line.out.size() && i < outputs.tensors.size(); ++i)
    session.variables[line.out[i]] = outputs.tensors[i];
}

std::map<std::string, Snapshot> seen_after(const Session& session, const Line& line) {
  std::map<std::string, Snapshot> seen;
  for (const std::string& name : line.out.empty() ? line.in : line.out) {
    const auto found = session.variables.find(name);
    if (found != session.variables.end() && found->second.defined()) seen[name] = Snapshot::of(found->second);
  }
  return seen;
}

}  // namespace

Result run(const Program& program, bool with_trace) {
  Session session;
  Result result;
  bool backward_refused = false;
  for (size_t i = 0; i < program.lines.size() && !backward_refused; ++i) {
    const Line& line = program.lines[i];
    if (!all_set(session, line)) {
      if (with_trace) result.trace.emplace_back();
      continue;
    }
    const Arguments args(line.args);
    std::string message;
    try {
      keep(session, line, call(session, line, args));
    } catch (const Error& error) {
      message = error.what();
      result.refusals.push_back({i, kind_of(error), message});
      backward_refused = line.op == "backward" || line.op == "grad";
    }
    if (result.malformed.empty()) {
      const std::string how = how_malformed(args, message);
      if (!how.empty()) result.malformed = "line " + std::to_string(i) + " (" + line.op + "): " + how;
    }
    if (with_trace) result.trace.push_back(seen_after(session, line));
  }
  while (!session.grad_modes.empty())
    session.grad_modes.pop_back();
  for (const auto& [name, tensor] : session.variables) {
    if (!tensor.defined()) continue;
    result.variables[name] = Snapshot::of(tensor);
    if (backward_refused) continue;
    if (const Tensor grad = tensor.grad(); grad.defined()) result.gradients[name] = Snapshot::of(grad);
  }
  return result;
}

nlohmann::json Result::to_json() const {
  const auto named = [](const std::map<std::string, Snapshot>& snapshots) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [name, snapshot] : snapshots)
      object[name] = snapshot.to_json();
    return object;
  };
  nlohmann::json object{{"variables", named(variables)}, {"gradients", named(gradients)}};
  object["refusals"] = nlohmann::json::array();
  for (const Refusal& refusal : refusals)
    object["refusals"].push_back({{"line", refusal.line}, {"kind", refusal.kind}, {"message", refusal.message}});
  for (const auto& after : trace)
    object["trace"].push_back(named(after));
  if (!malformed.empty()) object["malformed"] = malformed;
  return object;
}

}  // namespace brigade::differential
