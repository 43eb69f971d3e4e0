// Adds the operation and the user's line to errors that shapes, views and kernels throw, immediately or late.
#pragma once

#include <brigade/core/index_error.h>
#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

// Rethrows `error` with its type. Prepends "op: " unless the message already names the operation (`op` may be null),
// and appends " (called at file.cpp:12)" unless the message already has the line. Call it in a catch handler.
[[noreturn, gnu::cold]] void rethrow_located(const Error& error, const char* op, SourceLocation where);

template <class F>
decltype(auto) located(const char* op, SourceLocation where, F&& f) {
  const CallSite site(where);
  try {
    return f();
  } catch (const Error& error) {
    rethrow_located(error, op, where);
  }
}

template <class F>
decltype(auto) located(SourceLocation where, F&& f) {
  return located(nullptr, where, std::forward<F>(f));
}

// wrap_dim for an operation. Throws an IndexError that names the operation and the user's line.
int dimension_of(const char* op, int64_t dim, int dims, SourceLocation where);

}  // namespace brigade::autograd::detail
