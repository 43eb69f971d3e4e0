// Several ranks on one GPU, to test with: NCCL refuses two ranks of one host on one device, so each says that it is a
// host of its own, and they talk over sockets.
#pragma once

namespace brigade::dist::nccl {

// BRIGADE_NCCL_SHARE_GPU is set, and not to 0.
bool may_share_gpu();
// Before the first call of NCCL in the process.
void pose_as_host(int rank);

}  // namespace brigade::dist::nccl
