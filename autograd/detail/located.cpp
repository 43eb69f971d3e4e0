// Adds the operation and the user's line to error messages.
#include <brigade/autograd/detail/located.h>

#include <string>
#include <string_view>

namespace brigade::autograd::detail {

namespace {

template <class E>
void rethrow_as(const Error& error, const std::string& message, SourceLocation where) {
  if (dynamic_cast<const E*>(&error)) throw E(message, where);
}

}  // namespace

void rethrow_located(const Error& error, const char* op, SourceLocation where) {
  // The message may already name the operation.
  std::string message = error.what();
  const std::string_view words = std::string_view(message).substr(0, message.rfind(" (called at "));
  if (op && !brigade::detail::says(words, op)) message = std::string(op) + ": " + message;
  if (error.where().line() != 0) where = error.where();
  rethrow_as<ShapeError>(error, message, where);
  rethrow_as<DTypeError>(error, message, where);
  rethrow_as<IndexError>(error, message, where);
  rethrow_as<ValueError>(error, message, where);
  rethrow_as<DeviceError>(error, message, where);
  throw;
}

int dimension_of(const char* op, int64_t dim, int dims, SourceLocation where) {
  return located(op, where, [&] { return wrap_dim(dim, dims); });
}

}  // namespace brigade::autograd::detail
