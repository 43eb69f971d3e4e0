// Environment switches for testing NCCL groups on a single GPU: several ranks on one GPU, or a communicator for a
// single rank.
#pragma once

namespace brigade::dist::nccl {

// Whether BRIGADE_NCCL_SHARE_GPU is set, and not to 0. NCCL refuses two ranks of one host on one device, so each rank
// poses as a separate host, and they communicate over sockets.
bool may_share_gpu();
// Call it before the first NCCL call of the process.
void pose_as_host(int rank);

// Whether BRIGADE_NCCL_ONE_RANK is set, and not to 0: then a group of one rank calls NCCL like a larger group.
// Otherwise it does not use NCCL.
bool connects_one_rank();

}  // namespace brigade::dist::nccl
