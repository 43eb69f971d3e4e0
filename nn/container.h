// Modules made of modules: Sequential, ModuleList, ModuleDict; and lists of parameters: ParameterList, ParameterDict.
// The listed modules are the ones that run: replace_module changes both, or throws.
#pragma once

#include <brigade/nn/any_module.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace brigade::nn {

// Runs its modules one after another; each takes and returns one tensor. Children are named "0",
// "1", ... or as given.
//   nn::Sequential(nn::Linear(64, 32), nn::ReLU(), nn::Linear(32, 10))
//   nn::Sequential({{"fc1", nn::Linear(64, 32)}, {"act", nn::ReLU()}})
struct SequentialImpl : Module {
  SequentialImpl() = default;
  template <TensorModule First, TensorModule... Rest>
  explicit SequentialImpl(First first, Rest... rest) {
    push_back(std::move(first));
    (push_back(std::move(rest)), ...);
  }
  explicit SequentialImpl(const Named<AnyModule>& modules);

  void push_back(AnyModule module) { push_back(std::to_string(steps_.size()), std::move(module)); }
  void push_back(const std::string& name, AnyModule module);
  // Through this class, any module from tensor to tensor is accepted; through the base, only one of the same type
  // (ValueError).
  std::shared_ptr<Module> replace_module(const std::string& name, std::shared_ptr<Module> module,
                                         SourceLocation where = SourceLocation::current()) {
    return Module::replace_module(name, std::move(module), where);
  }
  template <Holder H>
  H replace_module(const std::string& name, H holder, SourceLocation where = SourceLocation::current()) {
    if constexpr (TensorModule<H>) {
      replace_step(name, holder, where);
    } else {
      Module::replace_module(name, std::shared_ptr<Module>(holder.ptr()), where);
    }
    return holder;
  }

  size_t size() const noexcept { return steps_.size(); }
  bool empty() const noexcept { return steps_.empty(); }
  // Throws IndexError.
  const AnyModule& operator[](size_t i) const;
  auto begin() const noexcept { return steps_.begin(); }
  auto end() const noexcept { return steps_.end(); }
  // Returns x itself if there is no module.
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

 protected:
  void child_replaced(const std::string& name, const std::shared_ptr<Module>& module) override;

 private:
  AnyModule& step(const std::string& name);
  void replace_step(const std::string& name, AnyModule module, SourceLocation where);

  std::vector<AnyModule> steps_;
  std::vector<std::string> names_;  // of the steps
};
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  BRIGADE_HANDLE(Sequential, SequentialImpl)
  Sequential(std::initializer_list<std::pair<std::string, AnyModule>> modules,
             SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<SequentialImpl>(Named<AnyModule>(modules)), where) {}
};

namespace detail {
[[noreturn]] void throw_no_item(const std::string& container, const std::string& which, size_t size,
                                const std::string& kind = "module");
[[noreturn]] void throw_wrong_item(const std::string& container, const std::string& name, const Module& old,
                                   const Module& fresh);

// Sets the handle to `module`; throws ValueError when its type does not allow that.
template <Holder H>
void rebind(const std::string& container, const std::string& name, H& handle, const std::shared_ptr<Module>& module) {
  if constexpr (std::same_as<H, AnyModule>) {
    if (!handle.rebind(module)) throw_wrong_item(container, name, *handle, *module);
  } else {
    auto impl = std::dynamic_pointer_cast<typename H::ImplType>(module);
    if (!impl) throw_wrong_item(container, name, *handle, *module);
    handle = H(std::move(impl));
  }
}
}  // namespace detail

// A list of modules of one type (AnyModule for mixed ones), named "0", "1", ...; not callable itself.
template <Holder H>
struct ModuleListImpl : Module {
  ModuleListImpl() = default;
  explicit ModuleListImpl(std::vector<H> items) {
    for (H& item : items)
      push_back(std::move(item));
  }
  void push_back(H holder) {
    register_module(std::to_string(items_.size()), std::shared_ptr<Module>(holder.ptr()));
    items_.push_back(std::move(holder));
  }
  size_t size() const noexcept { return items_.size(); }
  bool empty() const noexcept { return items_.empty(); }
  // Throws IndexError.
  H& operator[](size_t i) {
    if (i >= items_.size()) detail::throw_no_item("ModuleList", std::to_string(i), items_.size());
    return items_[i];
  }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }

 protected:
  void child_replaced(const std::string& name, const std::shared_ptr<Module>& module) override {
    for (size_t i = 0; i < items_.size(); ++i) {
      if (std::to_string(i) == name) detail::rebind("ModuleList", name, items_[i], module);
    }
  }

 private:
  std::vector<H> items_;
};
template <Holder H = AnyModule>
class ModuleList : public ModuleHolder<ModuleListImpl<H>> {
 public:
  BRIGADE_HANDLE(ModuleList, ModuleListImpl<H>)
};

// Modules of one type (AnyModule for mixed ones) by name, in the order in which they were inserted; not callable
// itself.
template <Holder H>
struct ModuleDictImpl : Module {
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(Named<H> items) {
    for (auto& [name, item] : items)
      insert(name, std::move(item));
  }
  void insert(const std::string& name, H holder) {
    register_module(name, std::shared_ptr<Module>(holder.ptr()));
    items_.emplace_back(name, std::move(holder));
  }
  bool contains(const std::string& name) { return find(name) != nullptr; }
  // Throws IndexError.
  H& operator[](const std::string& name) {
    H* found = find(name);
    if (!found) detail::throw_no_item("ModuleDict", "'" + name + "'", items_.size());
    return *found;
  }
  size_t size() const noexcept { return items_.size(); }
  bool empty() const noexcept { return items_.empty(); }
  // Iterates over pairs of name and module.
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }

 protected:
  void child_replaced(const std::string& name, const std::shared_ptr<Module>& module) override {
    if (H* item = find(name)) detail::rebind("ModuleDict", name, *item, module);
  }

 private:
  H* find(const std::string& name) {
    for (auto& [key, holder] : items_) {
      if (key == name) return &holder;
    }
    return nullptr;
  }
  Named<H> items_;
};
template <Holder H>
class ModuleDict : public ModuleHolder<ModuleDictImpl<H>> {
 public:
  BRIGADE_HANDLE(ModuleDict, ModuleDictImpl<H>)
};

// Parameters named "0", "1", ...; not callable.
struct ParameterListImpl : Module {
  ParameterListImpl() = default;
  explicit ParameterListImpl(const std::vector<Tensor>& items) {
    for (const Tensor& item : items)
      push_back(item);
  }
  // Throws like register_parameter, and ValueError for an undefined tensor.
  void push_back(const Tensor& item, SourceLocation where = SourceLocation::current());
  size_t size() const noexcept { return items_.size(); }
  bool empty() const noexcept { return items_.empty(); }
  // Throws IndexError.
  const Tensor& operator[](size_t i) const;
  auto begin() const noexcept { return items_.begin(); }
  auto end() const noexcept { return items_.end(); }

 private:
  std::vector<Tensor> items_;
};
BRIGADE_MODULE(ParameterList);

// Parameters by name, in the order in which they were inserted; not callable.
struct ParameterDictImpl : Module {
  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const Named<Tensor>& items) {
    for (const auto& [name, item] : items)
      insert(name, item);
  }
  // Throws like ParameterList.
  void insert(const std::string& name, const Tensor& item, SourceLocation where = SourceLocation::current());
  bool contains(const std::string& name) const;
  // Throws IndexError.
  const Tensor& operator[](const std::string& name) const;
  size_t size() const noexcept { return items_.size(); }
  bool empty() const noexcept { return items_.empty(); }
  // Iterates over pairs of name and tensor.
  auto begin() const noexcept { return items_.begin(); }
  auto end() const noexcept { return items_.end(); }

 private:
  Named<Tensor> items_;
};
BRIGADE_MODULE(ParameterDict);

}  // namespace brigade::nn
