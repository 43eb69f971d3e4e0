// Prints a program's view of CUDA's declarations, one line each. compare.py compiles the programs that use this header
// twice: with the emulation's headers and with a toolkit's.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace describe {

// The mangled name: one name per type, whatever its alias.
template <class T>
const char* type_name() {
  return typeid(T).name();
}

template <class... Arguments>
struct Types {};

// Whether the function is callable with the first `Count` of its arguments.
template <class Call, class... Arguments, size_t... I>
constexpr bool callable(Call, Types<Arguments...>, std::index_sequence<I...>) {
  using All = std::tuple<Arguments...>;
  return std::is_invocable_v<Call, std::tuple_element_t<I, All>...>;
}

template <class Result, class... Arguments, class Call>
void function(const char* name, Result (*)(Arguments...), Call call) {
  const auto fewest = [&]<size_t... N>(std::index_sequence<N...>) {
    size_t count = sizeof...(Arguments);
    // Tries fewer and fewer arguments.
    ((callable(call, Types<Arguments...>{}, std::make_index_sequence<sizeof...(Arguments) - N>{})
          ? void(count = sizeof...(Arguments) - N)
          : void()),
     ...);
    return count;
  }
  (std::make_index_sequence<sizeof...(Arguments) + 1>{});
  std::printf("function %s %s, needs %zu arguments\n", name, type_name<Result (*)(Arguments...)>(), fewest);
}

}  // namespace describe

#define DESCRIBE_FUNCTION(name)   \
  describe::function(#name, name, \
                     []<class... A>(A... arguments) -> decltype(name(arguments...)) { return name(arguments...); })
#define DESCRIBE_ENUMERATOR(name)                                                  \
  std::printf("enumerator %s = %lld of %s\n", #name, static_cast<long long>(name), \
              describe::type_name<decltype(name)>())
#define DESCRIBE_CONSTANT(name) std::printf("constant %s = %lld\n", #name, static_cast<long long>(name))
#define DESCRIBE_HANDLE(name)                                                                              \
  std::printf("handle %s = %lld of %s\n", #name, static_cast<long long>(reinterpret_cast<intptr_t>(name)), \
              describe::type_name<decltype(name)>())
#define DESCRIBE_ALIAS(name) std::printf("alias %s is %s\n", #name, describe::type_name<name*>())
#define DESCRIBE_LAYOUT(name) std::printf("type %s has %zu bytes, alignment %zu\n", #name, sizeof(name), alignof(name))
#define DESCRIBE_MEMBER(type, name) \
  std::printf("member %s::%s is %s\n", #type, #name, describe::type_name<decltype(type::name)>())
#define DESCRIBE_OFFSET(type, name) std::printf("member %s::%s at %zu\n", #type, #name, offsetof(type, name))
