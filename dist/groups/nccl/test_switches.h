// What the environment may ask of groups over NCCL to test with, where there is one GPU: several ranks on it, or a
// communicator for a rank that is alone.
#pragma once

namespace brigade::dist::nccl {

// BRIGADE_NCCL_SHARE_GPU is set, and not to 0. NCCL refuses two ranks of one host on one device, so each says that it is
// a host of its own, and they talk over sockets.
bool may_share_gpu();
// Before the first call of NCCL in the process.
void pose_as_host(int rank);

// BRIGADE_NCCL_ONE_RANK is set, and not to 0: a group of one rank calls NCCL as a larger group does. Otherwise it does not.
bool connects_one_rank();

}  // namespace brigade::dist::nccl
