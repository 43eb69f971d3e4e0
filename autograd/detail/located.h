// Adds the operation and the user's line to errors that shapes, views and kernels throw, at once or
// late.
#pragma once

#include <brigade/core/index_error.h>
#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

// Throws `error` once more, of the same type: with "op: " before its message when the message does
// not name the operation (`op` may be null), and " (called at file.cpp:12)" behind it when the line
// is not in it. To be called in a handler.
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

// wrap_dim for an operation. Throws IndexError that names it and the user's line.
int dimension_of(const char* op, int64_t dim, int dims, SourceLocation where);

}  // namespace brigade::autograd::detail
