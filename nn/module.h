// Module: a tree of named parameters, buffers and children, like torch::nn::Module.
//
//   struct NetImpl : nn::Module {
//     nn::Linear fc1{nullptr}, fc2{nullptr};
//     NetImpl() {
//       fc1 = register_module("fc1", nn::Linear(784, 64));
//       fc2 = register_module("fc2", nn::Linear(64, 10));
//     }
//     Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))); }
//   };
//   BRIGADE_MODULE(Net);
//
// Net is then a handle to a shared NetImpl (nn/module_holder.h); calling it opens a scope, so that
// the tape knows which module an operation ran in. Forward may have any arguments and any result.
#pragma once

#include <brigade/core/tensor.h>

#include <atomic>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brigade::nn {

// Pairs of a name and its value, in a defined order.
template <class T>
using Named = std::vector<std::pair<std::string, T>>;

// A handle to a module, like those that BRIGADE_MODULE makes.
template <class T>
concept Holder = requires(const T& holder) {
  holder.ptr();
};

// The names that load_state_dict could not match (strict = false).
struct IncompatibleKeys {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
};

class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module();

  // --- Building, in the constructor of the derived class or later. All functions return their argument. They throw
  // ValueError when the name is empty, contains '.', or is taken.

  // `tensor` is a leaf of a floating dtype, or undefined (no parameter; the name stays free). Sets its requires_grad.
  // Throws AutogradError for the result of an operation.
  Tensor register_parameter(const std::string& name, Tensor tensor, bool requires_grad = true,
                            SourceLocation where = SourceLocation::current());
  // Replaces a parameter by another tensor, to share one between modules:
  //   head->weight = head->replace_parameter("weight", table->weight);
  // As with replace_module, assign the result to the member. A shared parameter is listed once, under its first name,
  // moves once, is saved under each of its names, and stays shared when the module is converted. Throws ValueError when
  // there is no such parameter, ShapeError for another shape, AutogradError for the result of an operation.
  Tensor replace_parameter(const std::string& name, Tensor tensor, SourceLocation where = SourceLocation::current());
  // State that is saved but not trained (running statistics).
  Tensor register_buffer(const std::string& name, Tensor tensor);
  // One module may be registered in several places; its path is the first. Throws ValueError for an
  // empty handle and for a module that holds this one.
  std::shared_ptr<Module> register_module(const std::string& name, std::shared_ptr<Module> module);
  template <Holder H>
  H register_module(const std::string& name, H holder) {
    register_module(name, std::shared_ptr<Module>(holder.ptr()));
    return holder;
  }
  // Replaces a child by another module. The tree changes, but a member handle does not, so assign the result:
  //   net->fc1 = net->replace_module("fc1", nn::Linear(784, 64));
  // Throws ValueError when there is no such child, and when a container cannot run the new module.
  std::shared_ptr<Module> replace_module(const std::string& name, std::shared_ptr<Module> module,
                                         SourceLocation where = SourceLocation::current());
  template <Holder H>
  H replace_module(const std::string& name, H holder, SourceLocation where = SourceLocation::current()) {
    replace_module(name, std::shared_ptr<Module>(holder.ptr()), where);
    return holder;
  }

  // --- Access. Depth first in registration order; a tensor or a module that appears twice is listed once, under its
  // first name. `prefix` is put in front of all names ("encoder" turns "0.weight" into "encoder.0.weight").
  Named<Tensor> named_parameters(bool recurse = true, const std::string& prefix = "") const;
  Named<Tensor> named_buffers(bool recurse = true, const std::string& prefix = "") const;
  std::vector<Tensor> parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  // The direct children; a child that was registered twice is listed twice.
  Named<std::shared_ptr<Module>> named_children() const { return children_; }
  std::vector<std::shared_ptr<Module>> children() const;
  // This module ("" or the prefix itself) and all its descendants.
  Named<Module*> named_modules(const std::string& prefix = "");
  Named<const Module*> named_modules(const std::string& prefix = "") const;
  std::vector<Module*> modules();
  std::vector<const Module*> modules() const;

  // --- Operations on the whole tree.

  // Calls `body` with each module once, children before their parent, as PyTorch does.
  void apply(const std::function<void(Module&)>& body);
  // Selects training or evaluation mode, which Dropout and BatchNorm read.
  virtual void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const noexcept { return training_; }
  // set_to_none: the next backward starts afresh instead of adding to zeros.
  void zero_grad(bool set_to_none = true, SourceLocation where = SourceLocation::current());
  void requires_grad_(bool requires_grad = true, SourceLocation where = SourceLocation::current());
  // Converts floating parameters and buffers in place: they keep their identity, gradients are dropped. Throws
  // DTypeError for a dtype that is not floating; AutogradError, before anything changes, when a listener observes the
  // gradient of a parameter (convert before wrapping in DistributedDataParallel).
  void to(DType dtype, SourceLocation where = SourceLocation::current());
  // Moves all parameters and buffers, as above. Throws DeviceError when the device does not exist; AutogradError as
  // above.
  void to(Device device, SourceLocation where = SourceLocation::current());
  void cpu(SourceLocation where = SourceLocation::current()) { to(Device(), where); }
  void cuda(int index = 0, SourceLocation where = SourceLocation::current()) { to(Device(kCUDA, index), where); }

  // Parameters and buffers by name, in the order of the tree, detached, sharing memory. A tied tensor is listed under
  // each of its names, as in PyTorch. The tape does not count this as a use of the parameters.
  Named<Tensor> state_dict() const;
  // Copies values by name, converting dtypes. Throws a ValueError that lists every missing and unexpected name (when
  // strict), every shape that differs, and every pair of names of one shared tensor whose values differ (always); then
  // nothing has been changed.
  IncompatibleKeys load_state_dict(const Named<Tensor>& state, bool strict = true,
                                   SourceLocation where = SourceLocation::current());

  // This module as a T (a handle or its Impl: nn::Linear), or nullptr if it has another type.
  template <class T>
  auto* as() noexcept {
    if constexpr (requires { typename T::ImplType; }) {
      return dynamic_cast<typename T::ImplType*>(this);
    } else {
      return dynamic_cast<T*>(this);
    }
  }

  // --- Names.

  // "Linear": the type without namespaces and "Impl".
  std::string name() const;
  // Path from the root of the tree that this module was registered in ("encoder.0.fc1"; "" for a root). Interned: the
  // text lives as long as the process, even if the tree changes.
  const std::string& path() const;
  // The line where its handle was made; line() is 0 when that is not known. Set by the first note_made_at().
  const SourceLocation& made_at() const noexcept { return made_at_; }
  // Also sets the line of those parameters below that a layer of the library registered itself.
  void note_made_at(SourceLocation where) noexcept;

 protected:
  // The text between the parentheses when a tree is printed.
  virtual std::string extra() const { return ""; }
  // Called by replace_module before the child changes. A container that calls its children itself adopts the new one,
  // or throws ValueError when it cannot run it.
  virtual void child_replaced(const std::string& name, const std::shared_ptr<Module>& module);

 private:
  void convert(const std::string& what, const std::function<TensorOptions(const Tensor&)>& wanted,
               SourceLocation where);
  friend class CallScope;
  void warn_if_unregistered(const Module& caller, SourceLocation where) const;
  uint64_t first_trained() const;  // id of the first parameter that requires grad, 0 if there is none
  Named<Tensor> list_parameters(bool recurse, const std::string& prefix) const;
  friend std::ostream& operator<<(std::ostream& out, const Module& module);
  void check_name(const std::string& name, const char* kind) const;
  void check_child(const std::string& name, const std::shared_ptr<Module>& module) const;
  void adopt(const std::string& name, Module& child);
  void disown(Module& child);
  void forget_paths() const;
  const char* type_name() const;
  void visit(const std::string& prefix, const std::function<void(const std::string&, const Module&)>& body) const;
  void print(std::ostream& out, int indent) const;

  Named<Tensor> parameters_;
  Named<Tensor> buffers_;
  Named<std::shared_ptr<Module>> children_;
  Module* parent_ = nullptr;  // where it was registered first; cleared when that module dies or drops it
  std::string own_name_;
  mutable const std::string* path_ = nullptr;  // cached like the type's name: calls need both
  mutable const char* type_name_ = nullptr;
  SourceLocation made_at_ = {};
  // Its parameters were requested, or a warning was given: do not warn about a missing registration.
  mutable std::atomic<bool> accounted_for_ = false;
  bool training_ = true;
};

// The tree as PyTorch prints it:
//   Net(
//     (fc1): Linear(in_features=784, out_features=64, bias=true)
//   )
std::ostream& operator<<(std::ostream& out, const Module& module);

}  // namespace brigade::nn

#include <brigade/nn/module_holder.h>
