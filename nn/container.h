// Modules made of modules.
#pragma once

#include <brigade/nn/module.h>

#include <functional>

namespace brigade::nn {

// Runs its modules one after another; each takes and returns one tensor. Children are named "0", "1", ... or as given.
//   nn::Sequential(nn::Linear(64, 32), nn::ReLU(), nn::Linear(32, 10))
struct SequentialImpl : Module {
  SequentialImpl() = default;
  template <Holder First, Holder... Rest>
  explicit SequentialImpl(First first, Rest... rest) {
    push_back(std::move(first));
    (push_back(std::move(rest)), ...);
  }
  template <Holder H>
  void push_back(H holder) {
    push_back(std::to_string(steps_.size()), std::move(holder));
  }
  template <Holder H>
  void push_back(const std::string& name, H holder) {
    register_module(name, holder);
    steps_.push_back([holder](const Tensor& x, SourceLocation where) -> Tensor { return holder(x, where); });
  }
  size_t size() const noexcept { return steps_.size(); }
  Tensor forward(Tensor x, SourceLocation where = SourceLocation::current()) {
    for (const auto& step : steps_)
      x = step(x, where);
    return x;
  }

 private:
  std::vector<std::function<Tensor(const Tensor&, SourceLocation)>> steps_;
};
BRIGADE_MODULE(Sequential);

// A list of modules of one type, named "0", "1", ...; it is not called itself.
template <Holder H>
struct ModuleListImpl : Module {
  ModuleListImpl() = default;
  void push_back(H holder) {
    register_module(std::to_string(items_.size()), holder);
    items_.push_back(std::move(holder));
  }
  size_t size() const noexcept { return items_.size(); }
  H& operator[](size_t i) {
    if (i >= items_.size())
      throw IndexError("ModuleList: index " + std::to_string(i) + " of " + std::to_string(items_.size()) + " modules");
    return items_[i];
  }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }

 private:
  std::vector<H> items_;
};
template <Holder H>
class ModuleList : public ModuleHolder<ModuleListImpl<H>> {
 public:
  using ModuleHolder<ModuleListImpl<H>>::ModuleHolder;
};

// Modules of one type by name, in the order in which they were inserted; it is not called itself.
template <Holder H>
struct ModuleDictImpl : Module {
  ModuleDictImpl() = default;
  void insert(const std::string& name, H holder) {
    register_module(name, holder);
    items_.emplace_back(name, std::move(holder));
  }
  bool contains(const std::string& name) const { return find(name) != nullptr; }
  H& operator[](const std::string& name) {
    if (const H* found = find(name)) return const_cast<H&>(*found);
    throw IndexError("ModuleDict: there is no module '" + name + "'");
  }
  size_t size() const noexcept { return items_.size(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }

 private:
  const H* find(const std::string& name) const {
    for (const auto& [key, holder] : items_) {
      if (key == name) return &holder;
    }
    return nullptr;
  }
  Named<H> items_;
};
template <Holder H>
class ModuleDict : public ModuleHolder<ModuleDictImpl<H>> {
 public:
  using ModuleHolder<ModuleDictImpl<H>>::ModuleHolder;
};

}  // namespace brigade::nn
