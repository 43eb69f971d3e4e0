// Options as text, and a reader of saved states that reports missing, wrong and leftover entries.
#include <brigade/core/factory.h>
#include <brigade/nn/detail/options.h>
#include <brigade/optim/optimizer.h>

#include <algorithm>

namespace brigade::optim::detail {

void begin_group_text(std::string& text, size_t group) {
  if (!text.empty()) text += "\n";
  text += "group " + std::to_string(group) + ":";
}

void add_option_text(std::string& text, const std::string& name, double value) {
  if (text.back() != ':') text += ",";
  text += " " + name + " " + nn::detail::text_of(value);
}

StateReader::StateReader(const OptimizerState& state) {
  for (const auto& [name, tensor] : state.tensors)
    entries_[name].tensor = &tensor;
  for (const auto& [name, number] : state.numbers)
    entries_[name].number = number;
}

const double* StateReader::number(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.tensor) return nullptr;
  found->second.used = true;
  return &found->second.number;
}

double StateReader::required_number(const std::string& name) {
  if (const double* value = number(name)) return *value;
  throw ValueError(
      "optimizer state: '{}' is missing; it was saved from an optimizer with other groups or of another kind", name);
}

Tensor StateReader::tensor_like(const std::string& name, const Tensor& parameter, DType dtype, bool required) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || !found->second.tensor || !found->second.tensor->defined()) {
    if (!required) return Tensor();
    throw ValueError("optimizer state: '{}' is missing, although its parameter has moved before", name);
  }
  const Tensor& tensor = *found->second.tensor;
  const bool widens = dtype == kFloat32 && is_half(tensor.dtype());
  if (tensor.sizes() != parameter.sizes() || (tensor.dtype() != dtype && !widens)) {
    throw ValueError("optimizer state: '{}' is {}, expected {} {} as its parameter is {}", name, describe(tensor),
                     brigade::name(dtype), to_string(parameter.sizes()), describe(parameter));
  }
  found->second.used = true;
  Tensor copy = empty(parameter.sizes(), {dtype, parameter.device()});
  kernels::copy(copy, tensor);
  return copy;
}

void StateReader::finish() const {
  std::vector<std::string> unread;
  for (const auto& [name, entry] : entries_) {
    if (!entry.used) unread.push_back("'" + name + "'");
  }
  if (unread.empty()) return;
  std::sort(unread.begin(), unread.end());
  std::string text;
  for (size_t i = 0; i < unread.size() && i < 8; ++i)
    text += (i ? ", " : "") + unread[i];
  throw ValueError(
      "loaded state dict has a different number of parameter groups or parameters: nothing "
      "here takes its {} entries {}{}",
      unread.size(), text, unread.size() > 8 ? ", ..." : "");
}

void check_kind(const std::string& saved, const std::string& own) {
  if (saved.empty() || saved == own) return;
  throw ValueError("optimizer state: it was saved from {}, this is {}", saved, own);
}

void check_group_size(size_t group, double saved, size_t own) {
  if (saved == static_cast<double>(own)) return;
  throw ValueError(
      "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: group {} was "
      "saved with {} parameters, this one has {}",
      group, static_cast<int64_t>(saved), own);
}

}  // namespace brigade::optim::detail
