// Adds the user's line to errors that kernels throw, at once or late.
#pragma once

#include <brigade/core/index_error.h>
#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

template <class E>
[[noreturn]] void rethrow_located(const E& error, SourceLocation where) {
  if (error.where().line() != 0) throw;
  throw E(std::string(error.what()) + " (called at " + to_string(where) + ")", where);
}

template <class F>
decltype(auto) located(SourceLocation where, F&& f) {
  const CallSite site(where);
  try {
    return f();
  } catch (const ShapeError& error) {
    rethrow_located(error, where);
  } catch (const DTypeError& error) {
    rethrow_located(error, where);
  } catch (const IndexError& error) {
    rethrow_located(error, where);
  } catch (const ValueError& error) {
    rethrow_located(error, where);
  } catch (const DeviceError& error) {
    rethrow_located(error, where);
  }
}

}  // namespace brigade::autograd::detail
