// All optimizers.
#pragma once

#include <brigade/optim/adam.h>
#include <brigade/optim/clip_grad.h>
#include <brigade/optim/sgd.h>
