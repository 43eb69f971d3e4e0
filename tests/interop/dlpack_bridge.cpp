// C functions that dlpack_numpy.py calls through ctypes.
#include <brigade/core/dlpack.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>

#include <exception>
#include <string>

namespace {

thread_local std::string text;

const char* kept(const std::string& given) {
  text = given;
  return text.c_str();
}

}  // namespace

extern "C" {

// Exports a [2, 3] tensor of 0..5 (for bool: 0 1 0 1 0 1), transposed if `turned`, as a DLManagedTensor or a
// DLManagedTensorVersioned.
void* bridge_export(const char* dtype, int turned, int versioned, int read_only) {
  using namespace brigade;
  Tensor tensor = empty({2, 3}, dtype_from_name(dtype));
  visit_dtype(tensor.dtype(), [&]<class T>() {
    for (int i = 0; i < 6; ++i)
      tensor.data_ptr<T>()[i] = T(static_cast<compute_type<T>>(tensor.dtype() == kBool ? i % 2 : i));
  });
  if (turned) tensor = view::transpose(tensor, 0, 1);
  if (versioned) return to_dlpack_versioned(tensor, read_only != 0);
  return to_dlpack(tensor);
}

// Takes over the struct, adds 1 to the first element of a float32 tensor, and releases it. Returns a description of the
// tensor from before the addition, or the error.
const char* bridge_import(void* managed, int versioned, int copy) {
  using namespace brigade;
  try {
    const Tensor tensor = versioned ? from_dlpack(static_cast<dlpack::ManagedVersioned*>(managed),
                                                  copy ? ReadOnlyMemory::Copy : ReadOnlyMemory::Refuse)
                                    : from_dlpack(static_cast<dlpack::Managed*>(managed));
    std::string seen = describe(tensor) + " " + to_string(tensor.strides()) + ":";
    for (const double value : tensor.to_vector<double>())
      seen += " " + std::to_string(static_cast<int>(value));
    if (tensor.dtype() == kFloat32 && tensor.numel() > 0) tensor.data_ptr<float>()[0] += 1;
    return kept(seen);
  } catch (const std::exception& error) {
    return kept(error.what());
  }
}
}
