// The part of NCCL's ABI that Brigade uses. NCCL is loaded at run time, so that a program that does not use it needs
// neither the library nor its header. Names, values and signatures follow NCCL's documentation, and are stable since
// 2.14; tests/cuda/training/nccl_test.cpp compares them with nccl.h if it is available.
#pragma once

#include <cstddef>

namespace brigade::dist::nccl {

using Comm = struct OpaqueComm*;
using Stream = void*;  // a cudaStream_t

struct UniqueId {
  char internal[128];
};

enum class Result : int {
  Success = 0,
  UnhandledCudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
};

enum class DataType : int {
  Uint8 = 1,
  Int32 = 2,
  Int64 = 4,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  Bfloat16 = 9,
};

enum class RedOp : int { Sum = 0, Max = 2, Min = 3, Avg = 4 };

// The color of a rank that joins no part of a split communicator.
inline constexpr int kSplitNoColor = -1;

// The fields of 2.14, with that version's number: later versions use defaults for their additional fields.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

}  // namespace brigade::dist::nccl
