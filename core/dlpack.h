// DLPack (https://github.com/dmlc/dlpack, include/dlpack/dlpack.h, version 1.1): tensors handed to
// and taken from other libraries of the same process, without a copy.
//
// A producer fills a struct that describes its memory and carries a deleter; the consumer calls the
// deleter when it does not need the memory any more. The structs below have the layout of the
// specification's, so that pointers to them may be cast to its types and back. In Python they
// travel in capsules named "dltensor" and "dltensor_versioned".
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>

namespace brigade {

namespace dlpack {

inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint32_t kMinorVersion = 1;

struct Version {
  uint32_t major;
  uint32_t minor;
};

// The kinds of memory that Brigade has; the specification has more (import errors name them).
enum DeviceKind : int32_t { kDLCPU = 1, kDLCUDA = 2 };
struct DeviceOf {
  int32_t device_type;
  int32_t device_id;
};

enum DataTypeCode : uint8_t { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 };
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

// DLTensor
struct TensorView {
  void* data;
  DeviceOf device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};

// DLManagedTensor: the form before version 1.
struct Managed {
  TensorView dl_tensor;
  void* manager_ctx;
  void (*deleter)(Managed* self);
};

inline constexpr uint64_t kReadOnly = 1;  // DLPACK_FLAG_BITMASK_READ_ONLY
inline constexpr uint64_t kIsCopied = 2;  // DLPACK_FLAG_BITMASK_IS_COPIED

// DLManagedTensorVersioned
struct ManagedVersioned {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedVersioned* self);
  uint64_t flags;
  TensorView dl_tensor;
};

}  // namespace dlpack

// Exports the tensor's own memory, which stays alive until the deleter is called. Writes by the
// consumer are writes to the tensor, unseen by its version counter. On a device, work that is
// queued on its current stream may still write there: synchronize first, or make the consumer wait.
// `read_only` tells the consumer not to write. Throws ValueError for an undefined tensor and
// AutogradError "Can't export tensors that require gradient, use tensor.detach()".
dlpack::Managed* to_dlpack(const Tensor& tensor);
dlpack::ManagedVersioned* to_dlpack_versioned(const Tensor& tensor, bool read_only = false);

// What to do with memory that its producer marked as read-only: Brigade's tensors can all be
// written to.
enum class ReadOnlyMemory { Refuse, Copy };

// A tensor over the producer's memory; the deleter is called when the last tensor that uses the
// memory is gone, or at once if it was copied. Strides must not be negative; a producer guarantees
// that bool memory holds only 0 and 1. On an error `managed` is left alone: it still belongs to the
// caller. Throws ValueError for a null pointer, an inconsistent struct, a major version other than
// 1, memory that is not aligned for its dtype, negative strides or, unless copying is allowed,
// read-only memory; DTypeError for a dtype and DeviceError for a device that Brigade does not have;
// ShapeError for more than 64 dimensions.
Tensor from_dlpack(dlpack::Managed* managed);
Tensor from_dlpack(dlpack::ManagedVersioned* managed, ReadOnlyMemory read_only = ReadOnlyMemory::Refuse);

}  // namespace brigade
