// The operations that `brigade check` knows by name. Each family's file in ops/ adds its own from a
// static object:
//
//   const AddOperations add_activation{
//       {"relu", [](const Inputs& in, const Arguments&) -> Outputs { return relu(in[0]); }},
//   };
//
// Names and arguments are those of the rows in tests/reference/cases, which are PyTorch's.
#pragma once

#include <brigade/core/options.h>
#include <brigade/core/tensor.h>

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace brigade::lab::reference {

// The tensors of a row, in order; undefined where the row says "none".
class Inputs {
 public:
  Inputs(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  size_t size() const noexcept { return tensors_.size(); }
  // Throws ValueError when the row has no such input.
  const Tensor& operator[](size_t i) const;
  // Undefined when the row has no such input.
  Tensor optional(size_t i) const { return i < tensors_.size() ? tensors_[i] : Tensor(); }
  const std::vector<Tensor>& all() const noexcept { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

// The arguments of a row. An argument that the operation does not read is an error (see unused), so that none is
// silently ignored.
class Arguments {
 public:
  explicit Arguments(const nlohmann::json& object);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  bool has(const std::string& name) const;
  bool is_text(const std::string& name) const;
  // Throw ValueError when there is no such argument, or one of another type.
  double number(const std::string& name) const;
  Scalar scalar(const std::string& name) const;  // an integer, a bool or a floating-point number, as written in the row
  int64_t integer(const std::string& name) const;
  bool flag(const std::string& name) const;
  std::string text(const std::string& name) const;
  Shape shape(const std::string& name) const;               // a list, or one integer
  Shape shape_of(const std::string& name, int dims) const;  // a list of `dims` sizes
  std::vector<double> numbers(const std::string& name) const;
  // The same, or `otherwise` when the argument is missing: PyTorch's default. Rows that leave the argument out
  // compare the function's own default with it.
  double number(const std::string& name, double otherwise) const { return has(name) ? number(name) : otherwise; }
  Scalar scalar(const std::string& name, Scalar otherwise) const { return has(name) ? scalar(name) : otherwise; }
  int64_t integer(const std::string& name, int64_t otherwise) const { return has(name) ? integer(name) : otherwise; }
  bool flag(const std::string& name, bool otherwise) const { return has(name) ? flag(name) : otherwise; }
  std::string text(const std::string& name, const std::string& otherwise) const {
    return has(name) ? text(name) : otherwise;
  }
  Shape shape(const std::string& name, const Shape& otherwise) const { return has(name) ? shape(name) : otherwise; }
  // Sets `value` if the argument is given; otherwise leaves the library's default.
  void set(const std::string& name, double& value) const;
  void set(const std::string& name, int64_t& value) const;
  void set(const std::string& name, bool& value) const;
  template <size_t N>
  void set(const std::string& name, std::array<int64_t, N>& value) const {
    if (!has(name)) return;
    const Shape given = shape(name);
    for (size_t i = 0; i < N; ++i)
      value[i] = given[given.size() == 1 ? 0 : static_cast<int>(i)];
  }
  void set(const std::string& name, Size2& value) const { set(name, value.values); }

  // The names of arguments that were never read.
  std::vector<std::string> unused() const;

 private:
  const nlohmann::json& find(const std::string& name, const char* type) const;

  std::unique_ptr<nlohmann::json> object_;
  mutable std::set<std::string> used_;
};

struct Outputs {
  std::vector<Tensor> tensors;
  Outputs(Tensor tensor) : tensors{std::move(tensor)} {}                 // NOLINT: what most return
  Outputs(std::vector<Tensor> several) : tensors(std::move(several)) {}  // NOLINT
  Outputs(std::initializer_list<Tensor> several) : tensors(several) {}   // NOLINT
};

using Operation = Outputs (*)(const Inputs& in, const Arguments& args);

struct AddOperations {
  AddOperations(std::initializer_list<std::pair<const char*, Operation>> operations);
};

// Null when there is none.
Operation find_operation(const std::string& name);
std::vector<std::string> operation_names();

}  // namespace brigade::lab::reference
