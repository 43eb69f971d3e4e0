// All of Brigade.
#pragma once

#include <brigade/autograd/functional.h>
#include <brigade/dist/distributed_data_parallel.h>
#include <brigade/dist/sampler.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>
