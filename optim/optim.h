// All optimizers and related tools.
#pragma once

#include <brigade/optim/adam.h>
#include <brigade/optim/adaptive.h>
#include <brigade/optim/checkpoint.h>
#include <brigade/optim/clip_grad.h>
#include <brigade/optim/lr_scheduler.h>
#include <brigade/optim/sgd.h>
