// What errors say about the operation and the line.
#include <brigade/autograd/detail/located.h>

#include <cctype>
#include <string>

namespace brigade::autograd::detail {

namespace {

// As a whole word: "all" is not in "called".
bool names(const std::string& message, const std::string& op) {
  const auto in_word = [&](size_t i) {
    return i < message.size() && (std::isalnum(static_cast<unsigned char>(message[i])) || message[i] == '_');
  };
  for (size_t at = message.find(op); at != std::string::npos; at = message.find(op, at + 1))
    if (!(at > 0 && in_word(at - 1)) && !in_word(at + op.size())) return true;
  return false;
}

template <class E>
void rethrow_as(const Error& error, const std::string& message, SourceLocation where) {
  if (dynamic_cast<const E*>(&error)) throw E(message, where);
}

}  // namespace

void rethrow_located(const Error& error, const char* op, SourceLocation where) {
  // An operation that this one is made of may have found out, and have said its own name.
  std::string message = error.what();
  if (op && !names(message, op)) message = std::string(op) + ": " + message;
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
