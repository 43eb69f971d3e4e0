// Determines whether a file holds an operation or a model, runs it, and reports tensors that were compared with
// nothing.
#include <brigade/lab/reference/suite.h>

#include <brigade/core/detail/file_formats.h>
#include <brigade/core/safetensors.h>
#include <brigade/lab/json.h>
#include <brigade/lab/reference/check_case.h>
#include <brigade/lab/reference/models/model.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace brigade::lab::reference {
namespace {

using brigade::detail::in_quotes;
using nlohmann::json;

// "arguments" of the metadata, a JSON object.
json arguments_of(const SafetensorsFile& file) {
  const auto found = file.metadata().find("arguments");
  if (found == file.metadata().end()) return json::object();
  json arguments = parse_json(found->second);
  if (!arguments.is_object())
    throw ValueError("{}: the metadata \"arguments\" must be a JSON object, and is {}", file.path(),
                     in_quotes(found->second));
  return arguments;
}

// The sizes of a model are sizes of its tensors, which the file holds, and it has no more layers than tensors.
// Without this check a small file could request a model too large for any machine.
void check_sizes(const json& arguments, const SafetensorsFile& file) {
  auto most = static_cast<int64_t>(file.entries().size());
  for (const SafetensorsEntry& entry : file.entries())
    for (const int64_t size : entry.sizes)
      most = std::max(most, size);
  for (const auto& [name, value] : arguments.items()) {
    for (const json& each : value.is_array() ? value : json::array({value})) {
      if (!each.is_number_integer() || (each >= 0 && each <= most)) continue;
      throw ValueError("{}: the argument {} is {}; expected from 0 to {}, the largest size in the file", file.path(),
                       in_quotes(name), each.dump(), most);
    }
  }
}

std::string metadata(const SafetensorsFile& file, const std::string& name) {
  const auto found = file.metadata().find(name);
  return found == file.metadata().end() ? "" : found->second;
}

// The dtype of the first floating input.
DType input_dtype(const SafetensorsFile& file) {
  for (const SafetensorsEntry& entry : file.entries()) {
    if (!entry.name.starts_with("input.")) continue;
    if (const DType dtype = file.tensor(entry.name).dtype(); is_floating_point(dtype)) return dtype;
  }
  return DType::Float32;
}

// Runs the file as a case without a row of the table: missing inputs are undefined.
FileResult check_op(const SafetensorsFile& file, const std::string& op, const FileOptions& options) {
  json inputs = json::array();
  for (const SafetensorsEntry& entry : file.entries()) {
    if (!entry.name.starts_with("input.")) continue;
    size_t number = 0, read = 0;
    try {
      number = std::stoul(entry.name.substr(6), &read);
    } catch (const std::exception&) {
      read = 0;
    }
    if (read == 0 || read != entry.name.size() - 6 || number > 64)
      throw ValueError("{}: the inputs of an operation are named input.0, input.1, ...; this has {}", file.path(),
                       in_quotes(entry.name));
    while (inputs.size() <= number)
      inputs.push_back("none");
    inputs[number] = "given";
  }
  Case which;
  which.op = op;
  which.dtype = options.dtype.value_or(input_dtype(file));
  which.layouts.assign(inputs.size(), Layout::Contiguous);
  which.description = std::make_shared<json>(json{{"inputs", inputs}, {"args", arguments_of(file)}});
  std::set<std::string> asked;
  const CaseResult found =
      check_case(which,
                 [&](const std::string& name) -> Tensor {
                   if (!file.contains(name)) return {};
                   asked.insert(name);
                   const Tensor tensor = file.tensor(name);
                   return options.dtype && is_floating_point(tensor.dtype()) ? tensor.to(*options.dtype) : tensor;
                 },
                 {.device = options.device, .bound = options.bound, .partial = true});
  if (!found.error.empty()) throw ValueError("{}: {}", file.path(), found.error);
  FileResult result{"op", op, which.dtype, found.report};
  for (const SafetensorsEntry& entry : file.entries()) {
    if (asked.contains(entry.name)) continue;
    check::Comparison row;
    row.name = entry.name;
    row.problem = "additional: the operation '" + op + "' gives no such tensor";
    result.report.rows.push_back(row);
  }
  return result;
}

FileResult check_model(const SafetensorsFile& file, const std::string& name, const FileOptions& options) {
  const json given = arguments_of(file);
  check_sizes(given, file);
  const Arguments arguments(given);
  const std::unique_ptr<Model> model = make_model(name, arguments);
  std::vector<check::Phase> phases;
  for (int phase = 0; phase < model->phases(); ++phase)
    phases.push_back({&model->trained(phase),
                      [&model, phase](const std::vector<Tensor>& inputs) { return model->run(phase, inputs); }});
  FileResult result{"model", name, options.dtype.value_or(DType::Float32), {}};
  result.report = check::run(file, model->module(), phases,
                             {.bound = options.bound, .dtype = options.dtype, .device = options.device});
  for (const auto& [parameter, tensor] : model->module().named_parameters())
    result.dtype = tensor.dtype();
  return result;
}

}  // namespace

FileResult check_file(const std::string& path, const FileOptions& options) {
  const SafetensorsFile file(path);
  std::string model = options.model, op = options.op;
  if (model.empty() && op.empty()) {
    model = metadata(file, "model");
    op = metadata(file, "op");
  }
  if (model.empty() == op.empty()) {
    throw ValueError("{} {}; give one of --model and --op, or \"model\" or \"op\" in the metadata of the file", path,
                     model.empty() ? "does not say what it is of" : "says that it is of a model and of an op");
  }
  return op.empty() ? check_model(file, model, options) : check_op(file, op, options);
}

}  // namespace brigade::lab::reference
