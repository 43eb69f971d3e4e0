// Trains a model from the fixture's parameters, and compares its state after each step recorded there.
#include <brigade/lab/reference/training.h>

#include <brigade/amp/autocast.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/core/factory.h>
#include <brigade/lab/reference/models/model.h>
#include <brigade/optim/optim.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <set>

namespace brigade::lab::reference {
namespace {

using nlohmann::json;

constexpr const char* kOptimizers[] = {"sgd", "adamw"};

// Reads options by PyTorch's hyperparameter names.
template <class Options>
Options options_from(const json& given) {
  Options options;
  std::set<std::string> unknown;
  for (const auto& [name, value] : given.items())
    unknown.insert(name);
  options.for_each([&](const std::string& name, auto& value) {
    const size_t dot = name.find('.');  // "betas.0"
    const std::string key = name.substr(0, dot);
    if (!given.contains(key)) return;
    const json& entry = dot == std::string::npos ? given.at(key) : given.at(key).at(name.back() - '0');
    value = entry.get<std::remove_reference_t<decltype(value)>>();
    unknown.erase(key);
  });
  if (!unknown.empty()) throw ValueError("the optimizer has no option '{}'", *unknown.begin());
  return options;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name, const json& options,
                                                 const std::vector<Tensor>& parameters) {
  if (name == "sgd") return std::make_unique<optim::SGD>(parameters, options_from<optim::SGDOptions>(options));
  if (name == "adamw") return std::make_unique<optim::AdamW>(parameters, options_from<optim::AdamWOptions>(options));
  throw ValueError("unknown optimizer '{}'; known are sgd and adamw", name);
}

// Compares with the expected state after this step, if the fixture has one.
void compare_state(const std::string& prefix, nn::Module& module, const SafetensorsFile& fixture,
                   const check::Options& options, check::Report& report) {
  const std::string parameters = prefix + "parameter.", gradients = prefix + "grad.";
  check::NamedTensors expected, actual;
  for (const SafetensorsEntry& entry : fixture.entries()) {
    if (entry.name.starts_with(parameters) || entry.name.starts_with(gradients))
      expected.emplace_back(entry.name, fixture.tensor(entry.name));
  }
  if (expected.empty()) return;
  for (const auto& [name, tensor] : module.state_dict())
    actual.emplace_back(parameters + name, tensor);
  for (const auto& [name, tensor] : module.named_parameters())
    actual.emplace_back(gradients + name, tensor.grad());
  const check::Report found = check::compare(expected, actual, options);
  report.rows.insert(report.rows.end(), found.rows.begin(), found.rows.end());
}

double training_bound(DType dtype) {
  switch (dtype) {
    case kFloat64: return kTrainingBoundFloat64;
    case kFloat32: return kTrainingBoundFloat32;
    case kFloat16: return kTrainingBoundFloat16;
    default: break;
  }
  return kTrainingBoundBFloat16;
}

Tensor loss_of(const TrainingCase& which, Model& model, int phase, const std::vector<Tensor>& batch) {
  if (!which.autocast) return model.run(phase, batch).loss;
  const amp::autocast region(kCPU, which.dtype);
  return model.run(phase, batch).loss;
}

void train(const TrainingCase& which, const SafetensorsFile& fixture, Device device, check::Report& report) {
  const DType dtype = which.autocast ? kFloat32 : which.dtype;
  if (which.autocast) device = Device();
  const json& row = *which.row;
  const Arguments arguments(row.at("arguments"));
  const std::unique_ptr<Model> model = make_model(which.model, arguments);
  nn::Named<Tensor> initial;
  std::vector<Tensor> data;
  for (const SafetensorsEntry& entry : fixture.entries())
    if (entry.name.starts_with("parameter.")) initial.emplace_back(entry.name.substr(10), fixture.tensor(entry.name));
  for (size_t i = 0; fixture.contains("input." + std::to_string(i)); ++i) {
    const Tensor x = fixture.tensor("input." + std::to_string(i)).to(device);
    data.push_back(is_floating_point(x.dtype()) ? x.to(dtype) : x);
  }
  model->module().load_state_dict(initial);
  model->module().to(dtype);
  model->module().to(device);

  std::vector<std::unique_ptr<optim::Optimizer>> optimizers;
  for (int phase = 0; phase < model->phases(); ++phase)
    optimizers.push_back(make_optimizer(which.optimizer, row.at(which.optimizer), model->trained(phase).parameters()));
  const std::string prefix = which.optimizer + "/" + brigade::name(which.dtype) + "/";
  const check::Options options{.bound = training_bound(which.dtype)};
  std::vector<std::vector<double>> losses(optimizers.size());
  const int64_t steps = fixture.tensor(prefix + "loss.0").numel();
  for (int64_t step = 1; step <= steps; ++step) {
    std::vector<Tensor> batch;
    for (const Tensor& x : data)
      batch.push_back(x.select(0, (step - 1) % x.size(0)));
    for (int phase = 0; phase < model->phases(); ++phase) {
      optimizers[phase]->zero_grad();
      const Tensor loss = loss_of(which, *model, phase, batch);
      loss.backward();
      optimizers[phase]->step();
      losses[phase].push_back(loss.item());
    }
    compare_state(prefix + "step" + std::to_string(step) + "/", model->module(), fixture, options, report);
  }
  for (size_t phase = 0; phase < losses.size(); ++phase) {
    const std::string name = prefix + "loss." + std::to_string(phase);
    report.rows.push_back(check::compare(name, tensor(losses[phase], {steps}), fixture.tensor(name), options));
  }
}

}  // namespace

namespace {

json read_rows(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw IoError("cannot read {}", path);
  return json::parse(in);
}

}  // namespace

std::vector<TrainingCase> read_training_table(const std::string& folder) {
  std::vector<TrainingCase> table;
  for (const bool autocast : {false, true}) {
    const std::string path =
        (std::filesystem::path(folder) / (autocast ? "autocast_models.json" : "models.json")).string();
    try {
      for (const json& row : read_rows(path)) {
        for (const char* optimizer : kOptimizers) {
          if (!row.contains(optimizer)) continue;
          for (const DType dtype : {autocast ? kBFloat16 : kFloat64, autocast ? kFloat16 : kFloat32})
            table.push_back({row.at("model"), optimizer, dtype, std::make_shared<json>(row), autocast});
        }
      }
    } catch (const json::exception& error) {
      throw ValueError("{}: {}", path, error.what());
    }
  }
  return table;
}

CaseResult check_training(const TrainingCase& which, const SafetensorsFile& fixture, Device device) {
  CaseResult result;
  const auto described = fixture.metadata().find("case");
  if (described == fixture.metadata().end() || json::parse(described->second, nullptr, false) != *which.row) {
    result.error = fixture.path() + " was made from another row; run tests/reference/generate_models.py";
    return result;
  }
  try {
    train(which, fixture, device, result.report);
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  return result;
}

}  // namespace brigade::lab::reference
