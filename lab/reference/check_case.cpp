// Runs the case in its layouts and compares results, gradients and second derivatives in turn.
#include <brigade/lab/reference/check_case.h>

#include <brigade/amp/autocast.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/reference/operation.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace brigade::lab::reference {
namespace {

// Values that cancel to zero, such as a gradient of softmax at equal logits, are measured relative to this scale.
constexpr double kLeastScale = 0.05;
// Both sides round at the same places under autocast, so fewer roundings than check::kRoundings are allowed.
constexpr double kAutocastRoundings = 4;

// A tensor of a case with its place among the inputs, or among the results.
struct Numbered {
  size_t number;
  Tensor tensor;
};

std::vector<Tensor> tensors_of(const std::vector<Numbered>& list) {
  std::vector<Tensor> tensors;
  for (const Numbered& each : list)
    tensors.push_back(each.tensor);
  return tensors;
}

std::string numbered(const char* name, size_t i) { return std::string(name) + "." + std::to_string(i); }

// The same values with other strides.
Tensor in_layout(const Tensor& x, Layout layout) {
  switch (layout) {
    case Layout::Contiguous: return x;
    case Layout::Transposed: return x.transpose(-1, -2).contiguous().transpose(-1, -2);
    case Layout::Expanded: return x.slice(0, 0, 1).expand(x.sizes());
    case Layout::Sliced: break;
  }
  return stack({x, zeros_like(x)}, -1).select(-1, 0);
}

// An operation on its inputs.
struct Run {
  std::vector<Tensor> inputs, outputs;
  std::vector<Numbered> differentiated;  // inputs
};

Outputs call(const Case& which, Operation operation, const Inputs& inputs, const Arguments& arguments) {
  if (!which.autocast) return operation(inputs, arguments);
  const amp::autocast region(kCPU, which.dtype);
  return operation(inputs, arguments);
}

Run run(const Case& which, const Fixture& fixture, Device device) {
  const Operation operation = find_operation(which.op);
  if (!operation) throw ValueError("the operation '{}' is not known; add it to lab/reference/ops", which.op);
  Run result;
  const nlohmann::json& row = *which.description;
  for (size_t i = 0; i < which.layouts.size(); ++i) {
    if (row.at("inputs")[i] == "none") {
      result.inputs.emplace_back();
      continue;
    }
    const Tensor stored = fixture(numbered("input", i));
    if (!stored.defined()) throw ValueError("the fixture lacks {}", numbered("input", i));
    const Tensor x = in_layout(stored.to(device), which.layouts[i]).detach();
    if (fixture(numbered("grad", i)).defined()) {
      x.requires_grad_();
      result.differentiated.push_back({i, x});
    }
    result.inputs.push_back(x);
  }
  const Arguments arguments(row.value("args", nlohmann::json::object()));
  result.outputs = call(which, operation, Inputs(result.inputs), arguments).tensors;
  if (const std::vector<std::string> unused = arguments.unused(); !unused.empty())
    throw ValueError("the operation '{}' did not look at the argument '{}'", which.op, unused[0]);
  return result;
}

// Compares tensors with those of the fixture, by name.
class Judge {
 public:
  Judge(const Case& which, const Fixture& fixture, check::Report& report, int64_t terms, const CheckOptions& options)
      : which_(which), fixture_(fixture), report_(report), terms_(terms), options_(options) {}

  void compare(const std::string& name, const Tensor& actual, const std::string& by = "", double factor = 1) {
    const Tensor expected = fixture_(name);
    if (!expected.defined()) {
      if (options_.partial) return;
      throw ValueError("the fixture lacks {}", name);
    }
    const double known = which_.autocast ? check::default_bound(*which_.autocast, terms_, kAutocastRoundings)
                                         : check::default_bound(expected.dtype(), terms_);
    const double bound = options_.bound > 0 ? options_.bound : which_.bound * factor * known;
    const check::Options options{.bound = bound, .least_scale = kLeastScale};
    report_.rows.push_back(check::compare(name + by, actual, expected, options));
  }
  // A gradient that does not exist is compared as zeros.
  void compare_gradient(const std::string& name, const Tensor& gradient, const Tensor& of, const std::string& by,
                        double factor) {
    compare(name, gradient.defined() ? gradient : zeros_like(of).detach(), by, factor);
  }

 private:
  const Case& which_;
  const Fixture& fixture_;
  check::Report& report_;
  int64_t terms_;
  const CheckOptions& options_;
};

// The sum of <gradients, random weights>, undefined when no gradient has a history.
Tensor weighted(const std::vector<Numbered>& differentiated, const std::vector<Tensor>& gradients,
                const Fixture& fixture, Device device) {
  Tensor total;
  for (size_t k = 0; k < differentiated.size(); ++k) {
    const Tensor weight = fixture(numbered("grad_weight", differentiated[k].number));
    if (!weight.defined() || !gradients[k].defined() || !gradients[k].requires_grad()) continue;
    const Tensor part = sum(gradients[k] * weight.to(device));
    total = total.defined() ? total + part : part;
  }
  return total;
}

void check_gradients(const Fixture& fixture, const Run& ran, Judge& judge, const CheckOptions& options) {
  std::vector<Numbered> reached;  // results with a gradient
  std::vector<Tensor> grad_outputs;
  for (size_t i = 0; i < ran.outputs.size(); ++i) {
    Tensor grad_output = fixture(numbered("grad_output", i));
    if (!grad_output.defined() && options.partial && ran.outputs.size() == 1 && ran.outputs[i].numel() == 1)
      grad_output = ones_like(ran.outputs[i]).detach();
    if (!grad_output.defined()) continue;
    if (!ran.outputs[i].requires_grad()) throw ValueError("result {} has no gradient, the reference has one", i);
    reached.push_back({i, ran.outputs[i]});
    grad_outputs.push_back(grad_output.to(options.device).detach());
  }
  if (reached.empty())
    throw ValueError("gradients are expected, but there is no grad_output.0 to start from (the gradient of result 0)");
  const std::vector<Tensor> outputs = tensors_of(reached), inputs = tensors_of(ran.differentiated);
  const bool twice = fixture(numbered("grad_weight", ran.differentiated[0].number)).defined();

  const std::vector<Tensor> fast =
      autograd::grad(outputs, inputs, {.grad_outputs = grad_outputs, .retain_graph = twice, .allow_unused = true});
  for (size_t k = 0; k < inputs.size(); ++k)
    judge.compare_gradient(numbered("grad", ran.differentiated[k].number), fast[k], inputs[k], "", 1);
  if (!twice) return;

  for (const Tensor& grad_output : grad_outputs)
    grad_output.requires_grad_();
  const std::vector<Tensor> recorded =
      autograd::grad(outputs, inputs, {.grad_outputs = grad_outputs, .allow_unused = true, .create_graph = true});
  for (size_t k = 0; k < inputs.size(); ++k)
    judge.compare_gradient(numbered("grad", ran.differentiated[k].number), recorded[k], inputs[k], " (create_graph)",
                           2);
  for (const Tensor& gradient : recorded)
    if (options.seen && gradient.defined()) options.seen(gradient);
  std::vector<Tensor> variables = inputs;
  variables.insert(variables.end(), grad_outputs.begin(), grad_outputs.end());
  std::vector<Tensor> second(variables.size());
  if (const Tensor total = weighted(ran.differentiated, recorded, fixture, options.device); total.defined())
    second = autograd::grad(total, variables, {.allow_unused = true});
  for (size_t k = 0; k < inputs.size(); ++k)
    judge.compare_gradient(numbered("double", ran.differentiated[k].number), second[k], inputs[k], "", 4);
  for (size_t k = 0; k < reached.size(); ++k)
    judge.compare_gradient(numbered("double.grad_output", reached[k].number), second[inputs.size() + k],
                           grad_outputs[k], "", 4);
}

}  // namespace

double part_of_bound(const check::Comparison& row) {
  if (!row.problem.empty() || std::isnan(row.max_abs)) return std::numeric_limits<double>::infinity();
  if (row.max_abs == 0) return 0;
  return row.bound > 0 ? row.max_abs / row.bound : std::numeric_limits<double>::infinity();
}

const check::Comparison* CaseResult::worst() const {
  const auto found = std::max_element(report.rows.begin(), report.rows.end(),
                                      [](const auto& a, const auto& b) { return part_of_bound(a) < part_of_bound(b); });
  return found == report.rows.end() ? nullptr : &*found;
}

CaseResult check_case(const Case& which, const Fixture& fixture, const CheckOptions& given) {
  CaseResult result;
  CheckOptions options = given;
  if (which.autocast) options.device = Device();
  try {
    const Run ran = run(which, fixture, options.device);
    int64_t terms = 1;
    for (const Tensor& input : ran.inputs)
      if (input.defined()) terms = std::max(terms, input.numel());
    Judge judge(which, fixture, result.report, terms, options);
    for (size_t i = 0; i < ran.outputs.size(); ++i) {
      judge.compare(numbered("output", i), ran.outputs[i]);
      if (options.seen) options.seen(ran.outputs[i]);
    }
    if (fixture(numbered("output", ran.outputs.size())).defined())
      throw ValueError("the reference has more results than {}", ran.outputs.size());
    if (!ran.differentiated.empty()) check_gradients(fixture, ran, judge, options);
    if (result.report.rows.empty())
      throw ValueError("there is nothing to compare: expected results as output.0, ... or gradients as grad.0, ...");
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  return result;
}

}  // namespace brigade::lab::reference
