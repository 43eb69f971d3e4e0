// All of Brigade that a program uses: everything but the kernels, and what the libraries keep to
// themselves (detail/, and the files that scripts/check-umbrella.py lists).
#pragma once

#include <brigade/autograd/anomaly_mode.h>
#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/function.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/gradcheck.h>
#include <brigade/autograd/graph_picture.h>
#include <brigade/autograd/ops/as_strided.h>
#include <brigade/autograd/saved_tensor_hooks.h>
#include <brigade/autograd/tape.h>
#include <brigade/autograd/tape_query.h>
#include <brigade/core/device_runtime.h>
#include <brigade/core/dlpack.h>
#include <brigade/core/npy.h>
#include <brigade/core/safetensors.h>
#include <brigade/core/version.h>
#include <brigade/core/warning.h>
#include <brigade/dist/checks/values.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/join.h>
#include <brigade/dist/ddp/logging_data.h>
#include <brigade/dist/ddp/model_averaging.h>
#include <brigade/dist/ddp/sampler.h>
#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/groups/backends.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/dist/meeting/launch/environment.h>
#include <brigade/dist/meeting/launch/launcher.h>
#include <brigade/dist/meeting/store.h>
#include <brigade/dist/reducer/trace.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>
