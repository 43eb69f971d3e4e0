// All of Brigade.
#pragma once

#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/device_runtime.h>
#include <brigade/core/dlpack.h>
#include <brigade/core/npy.h>
#include <brigade/core/safetensors.h>
#include <brigade/dist/consistency.h>
#include <brigade/dist/distributed_data_parallel.h>
#include <brigade/dist/join.h>
#include <brigade/dist/logging_data.h>
#include <brigade/dist/model_averaging.h>
#include <brigade/dist/sampler.h>
#include <brigade/dist/sync_batch_norm.h>
#include <brigade/dist/trace.h>
#include <brigade/dist/zero_redundancy_optimizer.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>
