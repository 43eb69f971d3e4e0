// The registry of operations by name, and their arguments, read from JSON with type checks.
#include <brigade/lab/reference/operation.h>

#include <nlohmann/json.hpp>

#include <map>

namespace brigade::lab::reference {
namespace {

std::map<std::string, Operation>& registry() {
  static std::map<std::string, Operation> operations;
  return operations;
}

// JSON has no infinities: they are written as text.
double as_number(const nlohmann::json& value) {
  if (value.is_string()) return std::stod(value.get<std::string>());
  return value.get<double>();
}

}  // namespace

const Tensor& Inputs::operator[](size_t i) const {
  if (i >= tensors_.size())
    throw ValueError("the operation takes an input {}, the row has {} inputs", i, tensors_.size());
  return tensors_[i];
}

Arguments::Arguments(const nlohmann::json& object) : object_(std::make_unique<nlohmann::json>(object)) {}
Arguments::~Arguments() = default;

bool Arguments::has(const std::string& name) const { return object_->contains(name); }

bool Arguments::is_text(const std::string& name) const { return has(name) && object_->at(name).is_string(); }

const nlohmann::json& Arguments::find(const std::string& name, const char* type) const {
  used_.insert(name);
  if (!has(name)) throw ValueError("the operation needs the argument '{}' ({})", name, type);
  return object_->at(name);
}

double Arguments::number(const std::string& name) const {
  const nlohmann::json& value = find(name, "a number");
  if (!value.is_number() && !value.is_string())
    throw ValueError("argument '{}': expected a number, got {}", name, value.dump());
  return as_number(value);
}

Scalar Arguments::scalar(const std::string& name) const {
  const nlohmann::json& value = find(name, "a number");
  if (value.is_boolean()) return value.get<bool>();
  return value.is_number_integer() ? Scalar(value.get<int64_t>()) : Scalar(number(name));
}

int64_t Arguments::integer(const std::string& name) const {
  const nlohmann::json& value = find(name, "an integer");
  if (!value.is_number_integer()) throw ValueError("argument '{}': expected an integer, got {}", name, value.dump());
  return value.get<int64_t>();
}

bool Arguments::flag(const std::string& name) const {
  const nlohmann::json& value = find(name, "true or false");
  if (!value.is_boolean()) throw ValueError("argument '{}': expected true or false, got {}", name, value.dump());
  return value.get<bool>();
}

std::string Arguments::text(const std::string& name) const {
  const nlohmann::json& value = find(name, "a text");
  if (!value.is_string()) throw ValueError("argument '{}': expected a text, got {}", name, value.dump());
  return value.get<std::string>();
}

Shape Arguments::shape(const std::string& name) const {
  const nlohmann::json& value = find(name, "a list of integers");
  if (value.is_number_integer()) return {value.get<int64_t>()};
  if (!value.is_array()) throw ValueError("argument '{}': expected a list of integers, got {}", name, value.dump());
  Shape shape;
  for (const nlohmann::json& entry : value) {
    if (!entry.is_number_integer())
      throw ValueError("argument '{}': expected a list of integers, got {}", name, value.dump());
    shape.push_back(entry.get<int64_t>());
  }
  return shape;
}

Shape Arguments::shape_of(const std::string& name, int dims) const {
  Shape found = shape(name);
  if (found.size() != dims)
    throw ValueError("argument '{}': expected a list of {} integers, got {}", name, dims, found.size());
  return found;
}

std::vector<double> Arguments::numbers(const std::string& name) const {
  const nlohmann::json& value = find(name, "a list of numbers");
  if (!value.is_array()) throw ValueError("argument '{}': expected a list of numbers, got {}", name, value.dump());
  std::vector<double> numbers;
  for (const nlohmann::json& entry : value)
    numbers.push_back(as_number(entry));
  return numbers;
}

void Arguments::set(const std::string& name, double& value) const {
  if (has(name)) value = number(name);
}
void Arguments::set(const std::string& name, int64_t& value) const {
  if (has(name)) value = integer(name);
}
void Arguments::set(const std::string& name, bool& value) const {
  if (has(name)) value = flag(name);
}

std::vector<std::string> Arguments::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_->items())
    if (!used_.contains(name)) names.push_back(name);
  return names;
}

AddOperations::AddOperations(std::initializer_list<std::pair<const char*, Operation>> operations) {
  for (const auto& [name, operation] : operations)
    registry().emplace(name, operation);
}

Operation find_operation(const std::string& name) {
  const auto found = registry().find(name);
  return found == registry().end() ? nullptr : found->second;
}

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const auto& [name, operation] : registry())
    names.push_back(name);
  return names;
}

}  // namespace brigade::lab::reference
