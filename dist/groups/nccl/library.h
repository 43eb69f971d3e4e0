// The NCCL library, loaded on first use.
#pragma once

#include <brigade/dist/groups/nccl/abi.h>

#include <string>

namespace brigade::dist::nccl {

struct Library {
  Result (*get_version)(int* version);
  const char* (*get_error_string)(Result result);
  const char* (*get_last_error)(Comm comm);
  Result (*get_unique_id)(UniqueId* id);
  Result (*comm_init_rank_config)(Comm* comm, int ranks, UniqueId id, int rank, Config* config);
  Result (*comm_get_async_error)(Comm comm, Result* error);
  Result (*comm_finalize)(Comm comm);
  Result (*comm_destroy)(Comm comm);
  Result (*comm_abort)(Comm comm);
  Result (*all_reduce)(const void* from, void* to, size_t count, DataType type, RedOp op, Comm comm, Stream stream);
  Result (*broadcast)(const void* from, void* to, size_t count, DataType type, int root, Comm comm, Stream stream);
  Result (*all_gather)(const void* from, void* to, size_t count_of_one, DataType type, Comm comm, Stream stream);
  Result (*reduce_scatter)(const void* from, void* to, size_t count_of_one, DataType type, RedOp op, Comm comm,
                           Stream stream);
  Result (*send)(const void* from, size_t count, DataType type, int peer, Comm comm, Stream stream);
  Result (*recv)(void* to, size_t count, DataType type, int peer, Comm comm, Stream stream);
  // Calls of this thread between the two are issued together by group_end.
  Result (*group_start)();
  Result (*group_end)();
  // Null before 2.18. A null `config` means the one of `comm`.
  Result (*comm_split)(Comm comm, int color, int key, Comm* part, Config* config);
  // Null before 2.19.
  Result (*mem_alloc)(void** data, size_t bytes);
  Result (*mem_free)(void* data);
  Result (*comm_register)(Comm comm, void* data, size_t bytes, void** handle);
  Result (*comm_deregister)(Comm comm, void* handle);
  int version = 0;  // 22809 is 2.28.9
};

// The oldest version with nonblocking communicators (ncclCommInitRankConfig).
inline constexpr int kOldestVersion = 21400;

// "2.28.9"
std::string version_in_words(int version);

// Throws DistError, with the path and how to install NCCL, when the library is missing, lacks a function, or is older
// than kOldestVersion.
Library load(const std::string& path);
// Loads once per process: the file in $BRIGADE_NCCL_LIBRARY, else the library linked into the program, else
// libnccl.so.2. Throws as load() does.
const Library& library();

// --- Environment switches for testing NCCL groups on a single GPU: several ranks on one GPU, or a communicator for a
// single rank.

// Whether BRIGADE_NCCL_SHARE_GPU is set, and not to 0. NCCL refuses two ranks of one host on one device, so each rank
// poses as a separate host, and they communicate over sockets.
bool may_share_gpu();
// Call it before the first NCCL call of the process.
void pose_as_host(int rank);

// Whether BRIGADE_NCCL_ONE_RANK is set, and not to 0: then a group of one rank calls NCCL like a larger group.
// Otherwise it does not use NCCL.
bool connects_one_rank();

}  // namespace brigade::dist::nccl
