// All schedules of learning rates.
#pragma once

#include <brigade/optim/lr_scheduler/combined.h>
#include <brigade/optim/lr_scheduler/decay.h>
#include <brigade/optim/lr_scheduler/one_cycle.h>
#include <brigade/optim/lr_scheduler/plateau.h>
#include <brigade/optim/lr_scheduler/warm_up.h>
