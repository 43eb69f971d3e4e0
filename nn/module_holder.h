// ModuleHolder: a handle to a shared module, and BRIGADE_MODULE, which defines a handle.
//
//   Net net;                  // constructs a NetImpl; arguments go to its constructor
//   nn::Linear fc{nullptr};   // an empty handle, to be assigned later
//   Tensor y = net(x);        // runs NetImpl::forward inside the module's scope
//
// The Impl declares the types of arguments in braces: `using Options = ...` for the last argument, `using Size = ...`
// for the others:
//   nn::Conv2d conv(16, 32, {3, 5}, {.stride = 2});
//
// Copies share the module. A call may have one to four arguments of any type, which are forwarded. The caller's line
// reaches the tape: a forward that takes a SourceLocation after these arguments gets it,
//   Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
// so the operation inside nn::Linear is recorded at the user's line. (If forward has default arguments before `where`,
// add an overload without them, or the line cannot be passed on.)
#pragma once

#include <brigade/nn/call_scope.h>
#include <brigade/nn/module.h>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace brigade::nn {

namespace detail {
[[noreturn]] void throw_empty_handle(const std::type_info& impl);

template <class T>
concept NotALocation = !std::same_as<std::remove_cvref_t<T>, SourceLocation>;

// The type of an argument in braces: Impl::Options if it is the last one and Impl takes options there, otherwise
// Impl::Size (of a kernel, an image).
struct Nothing {
  Nothing() = delete;
};
struct InBraces {};
template <class Impl>
struct SizeOf {
  using type = Nothing;
};
template <class Impl>
requires requires { typename Impl::Size; }
struct SizeOf<Impl> {
  using type = typename Impl::Size;
};
template <class Impl>
using Size = typename SizeOf<Impl>::type;
template <class Impl, class... Before>
struct LastOf : SizeOf<Impl> {};
template <class Impl, class... Before>
requires std::is_constructible_v<Impl, Before..., typename Impl::Options>
struct LastOf<Impl, Before...> {
  using type = typename Impl::Options;
};
template <class Impl, class... Before>
using Last = typename LastOf<Impl, Before...>::type;
}  // namespace detail

template <class Impl>
class ModuleHolder {
 public:
  using ImplType = Impl;

  // `where`: the line where the module was made, for messages about it.
  ModuleHolder(SourceLocation where = SourceLocation::current()) {  // NOLINT
    static_assert(std::is_default_constructible_v<Impl>,
                  "this module needs arguments: give them here, or write `nn::Linear fc{nullptr};` for an empty handle "
                  "that is assigned later");
    if constexpr (std::is_default_constructible_v<Impl>) impl_ = made(where);
  }
  // An empty handle, to be assigned in the constructor of the module that owns it. Using it throws
  // ValueError.
  ModuleHolder(std::nullptr_t) noexcept {}                                                             // NOLINT
  ModuleHolder(std::shared_ptr<Impl> impl, SourceLocation where = SourceLocation::current()) noexcept  // NOLINT
      : impl_(std::move(impl)) {
    if (impl_) impl_->note_made_at(where);
  }
  // Used by BRIGADE_HANDLE.
  ModuleHolder(detail::InBraces, const detail::Last<Impl>& options, SourceLocation where) {
    if constexpr (std::is_constructible_v<Impl, const detail::Last<Impl>&>) impl_ = made(where, options);
  }
  // Arguments go to the constructor of Impl.
  template <class A = detail::Size<Impl>>
  requires(!std::is_base_of_v<ModuleHolder, std::remove_cvref_t<A>> && detail::NotALocation<A> &&
           std::is_constructible_v<Impl, A>) explicit ModuleHolder(A&& a,
                                                                   SourceLocation where = SourceLocation::current())
      : impl_(made(where, std::forward<A>(a))) {}
  template <class A = detail::Size<Impl>, detail::NotALocation B = detail::Last<Impl, A>>
  requires std::is_constructible_v<Impl, A, B>
  explicit ModuleHolder(A&& a, B&& b, SourceLocation where = SourceLocation::current())
      : impl_(made(where, std::forward<A>(a), std::forward<B>(b))) {}
  template <class A = detail::Size<Impl>, class B = detail::Size<Impl>,
            detail::NotALocation C = detail::Last<Impl, A, B>>
  requires std::is_constructible_v<Impl, A, B, C>
  explicit ModuleHolder(A&& a, B&& b, C&& c, SourceLocation where = SourceLocation::current())
      : impl_(made(where, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c))) {}
  template <class A = detail::Size<Impl>, class B = detail::Size<Impl>, class C = detail::Size<Impl>,
            detail::NotALocation D = detail::Last<Impl, A, B, C>>
  requires std::is_constructible_v<Impl, A, B, C, D>
  explicit ModuleHolder(A&& a, B&& b, C&& c, D&& d, SourceLocation where = SourceLocation::current())
      : impl_(made(where, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d))) {}
  template <class A, class B, class C, class D, detail::NotALocation E, class... Rest>
  requires std::is_constructible_v<Impl, A, B, C, D, E, Rest...>
  explicit ModuleHolder(A&& a, B&& b, C&& c, D&& d, E&& e, Rest&&... rest)
      : impl_(made({}, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
                   std::forward<E>(e), std::forward<Rest>(rest)...)) {}
  ModuleHolder(const ModuleHolder&) noexcept = default;
  ModuleHolder(ModuleHolder&&) noexcept = default;
  // Lvalues only: an assignment to a temporary handle would be lost.
  ModuleHolder& operator=(const ModuleHolder&) & noexcept = default;
  ModuleHolder& operator=(ModuleHolder&&) & noexcept = default;
  ~ModuleHolder() = default;

  const std::shared_ptr<Impl>& ptr() const noexcept { return impl_; }
  Impl* get() const { return checked(); }
  Impl* operator->() const { return checked(); }
  Impl& operator*() const { return *checked(); }
  explicit operator bool() const noexcept { return impl_ != nullptr; }

  template <class A>
  decltype(auto) operator()(A&& a, SourceLocation where = SourceLocation::current()) const {
    return call(where, std::forward<A>(a));
  }
  template <class A, detail::NotALocation B>
  decltype(auto) operator()(A&& a, B&& b, SourceLocation where = SourceLocation::current()) const {
    return call(where, std::forward<A>(a), std::forward<B>(b));
  }
  template <class A, class B, detail::NotALocation C>
  decltype(auto) operator()(A&& a, B&& b, C&& c, SourceLocation where = SourceLocation::current()) const {
    return call(where, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
  }
  template <class A, class B, class C, detail::NotALocation D>
  decltype(auto) operator()(A&& a, B&& b, C&& c, D&& d, SourceLocation where = SourceLocation::current()) const {
    return call(where, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d));
  }

 private:
  template <class... Args>
  static std::shared_ptr<Impl> made(SourceLocation where, Args&&... args) {
    auto impl = std::make_shared<Impl>(std::forward<Args>(args)...);
    impl->note_made_at(where);
    return impl;
  }
  Impl* checked() const {
    if (!impl_) [[unlikely]]
      detail::throw_empty_handle(typeid(Impl));
    return impl_.get();
  }
  template <class... Args>
  decltype(auto) call(SourceLocation where, Args&&... args) const {
    Impl& impl = *checked();
    const CallScope scope(impl, where);
    if constexpr (requires { impl.forward(std::forward<Args>(args)..., where); }) {
      return impl.forward(std::forward<Args>(args)..., where);
    } else {
      return impl.forward(std::forward<Args>(args)...);
    }
  }

  std::shared_ptr<Impl> impl_;
};

// Prints the tree of the module.
template <class Impl>
std::ostream& operator<<(std::ostream& out, const ModuleHolder<Impl>& holder) {
  return out << static_cast<const Module&>(*holder);
}

}  // namespace brigade::nn

// The common members of each handle to an Impl: the constructors of ModuleHolder, and no assignment to temporaries.
// (The default constructor is a template, so that a module that needs arguments is checked only if it is made without
// them. Options alone need a constructor that is not a template, or their braces would be taken for a handle to copy.)
#define BRIGADE_HANDLE(Name, ...)                                                                  \
  using brigade::nn::ModuleHolder<__VA_ARGS__>::ModuleHolder;                                      \
  template <class = void>                                                                          \
  Name(brigade::SourceLocation where = brigade::SourceLocation::current())                         \
      : brigade::nn::ModuleHolder<__VA_ARGS__>(where) {}                                           \
  explicit Name(const brigade::nn::detail::Last<__VA_ARGS__>& options,                             \
                brigade::SourceLocation where = brigade::SourceLocation::current())                \
      : brigade::nn::ModuleHolder<__VA_ARGS__>(brigade::nn::detail::InBraces(), options, where) {} \
  Name(const Name&) noexcept = default;                                                            \
  Name(Name&&) noexcept = default;                                                                 \
  Name& operator=(const Name&)& noexcept = default;                                                \
  Name& operator=(Name&&)& noexcept = default;                                                     \
  ~Name() = default;

// Defines Name as the handle of NameImpl.
#define BRIGADE_MODULE(Name)                                  \
  class Name : public brigade::nn::ModuleHolder<Name##Impl> { \
   public:                                                    \
    BRIGADE_HANDLE(Name, Name##Impl)                          \
  }
