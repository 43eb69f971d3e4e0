// Loads the file's parameters into the module, runs its steps, and compares loss and gradients.
#include <brigade/nn/check.h>

#include <algorithm>
#include <map>

namespace brigade::check {
namespace {

std::string numbered(const std::string& name, size_t i) { return name + "." + std::to_string(i); }

// Compares the file's parameters with the module's: a row for each name that only one side has, and for each shape that
// differs.
Report compare_names(const NamedTensors& parameters, const nn::Module& module) {
  Report report;
  const auto tell = [&](const std::string& name, const std::string& problem) {
    Comparison row;
    row.name = "parameter." + name;
    row.problem = problem;
    report.rows.push_back(row);
  };
  std::map<std::string, Tensor> given(parameters.begin(), parameters.end());
  for (const auto& [name, tensor] : module.state_dict()) {
    const auto found = given.find(name);
    if (found == given.end()) {
      tell(name, "missing: the module has " + describe(tensor) + ", the file has no such tensor");
      continue;
    }
    if (found->second.sizes() != tensor.sizes())
      tell(name,
           "the module has the shape " + to_string(tensor.sizes()) + ", the file " + to_string(found->second.sizes()));
    given.erase(found);
  }
  for (const auto& [name, tensor] : given)
    tell(name, "additional: the file has " + describe(tensor) + ", the module has no such parameter or buffer");
  return report;
}

std::vector<Tensor> read_inputs(const SafetensorsFile& file, DType dtype, Device device) {
  std::vector<Tensor> inputs;
  size_t count = 0;
  for (const SafetensorsEntry& entry : file.entries())
    count += entry.name.starts_with("input.");
  for (size_t i = 0; i < count; ++i) {
    if (!file.contains(numbered("input", i)))
      throw ValueError("{} has {} inputs but no {}; name them input.0, input.1, ...", file.path(), count,
                       numbered("input", i));
    Tensor x = file.tensor(numbered("input", i)).to(device);
    if (is_floating_point(x.dtype())) {
      x = x.to(dtype).detach();
      if (file.contains(numbered("grad.input", i))) x.requires_grad_();
    }
    inputs.push_back(x);
  }
  return inputs;
}

}  // namespace

Report run(const SafetensorsFile& file, nn::Module& module, const std::vector<Phase>& phases,
           const RunOptions& options) {
  NamedTensors parameters, expected, actual;
  std::optional<DType> dtype = options.dtype;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (entry.name.starts_with("parameter.")) {
      parameters.emplace_back(entry.name.substr(10), file.tensor(entry.name));
      if (const DType found = parameters.back().second.dtype(); !dtype && is_floating_point(found)) dtype = found;
    } else if (is_expectation(entry.name)) {
      expected.emplace_back(entry.name, file.tensor(entry.name));
    }
  }
  if (Report names = compare_names(parameters, module); !names.rows.empty()) return names;
  if (!dtype)
    throw ValueError("{} has no floating tensor parameter.NAME; see docs/check.md for the layout", file.path());
  module.load_state_dict(parameters);
  module.to(*dtype);
  module.to(options.device);

  const std::vector<Tensor> inputs = read_inputs(file, *dtype, options.device);
  for (size_t phase = 0; phase < phases.size(); ++phase) {
    module.zero_grad();
    const Step step = phases[phase].step(inputs);
    step.loss.backward();
    actual.emplace_back(phases.size() == 1 ? "loss" : numbered("loss", phase), step.loss.detach());
    for (size_t i = 0; phase == 0 && i < step.outputs.size(); ++i)
      if (file.contains(numbered("output", i))) actual.emplace_back(numbered("output", i), step.outputs[i].detach());
    for (const auto& [name, parameter] : module.named_parameters()) {
      const std::vector<Tensor> trained = phases[phase].trained->parameters();
      const bool here =
          std::any_of(trained.begin(), trained.end(), [&](const Tensor& t) { return t.is_same(parameter); });
      if (here && parameter.grad().defined()) actual.emplace_back("grad." + name, parameter.grad().clone());
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].requires_grad()) actual.emplace_back(numbered("grad.input", i), inputs[i].grad());

  std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Report report = compare(expected, actual, {.bound = options.bound, .roundings = kModuleRoundings});
  return report;
}

Report run(const std::string& file, nn::Module& module, const StepFunction& step, const RunOptions& options) {
  return run(SafetensorsFile(file), module, {{&module, step}}, options);
}

}  // namespace brigade::check
