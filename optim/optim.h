// All optimizers and related tools.
#pragma once

#include <brigade/optim/adadelta.h>
#include <brigade/optim/adagrad.h>
#include <brigade/optim/adam.h>
#include <brigade/optim/checkpoint.h>
#include <brigade/optim/clip_grad.h>
#include <brigade/optim/lion.h>
#include <brigade/optim/lr_scheduler.h>
#include <brigade/optim/nadam.h>
#include <brigade/optim/radam.h>
#include <brigade/optim/rmsprop.h>
#include <brigade/optim/sgd.h>
