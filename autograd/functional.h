// All differentiable operations.
#pragma once

#include <brigade/autograd/backward.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/ops/activation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/attention.h>
#include <brigade/autograd/ops/batch_norm.h>
#include <brigade/autograd/ops/concat.h>
#include <brigade/autograd/ops/conv.h>
#include <brigade/autograd/ops/cross_entropy.h>
#include <brigade/autograd/ops/dropout.h>
#include <brigade/autograd/ops/embedding.h>
#include <brigade/autograd/ops/group_norm.h>
#include <brigade/autograd/ops/fold.h>
#include <brigade/autograd/ops/inplace.h>
#include <brigade/autograd/ops/interpolate.h>
#include <brigade/autograd/ops/layer_norm.h>
#include <brigade/autograd/ops/likelihood_loss.h>
#include <brigade/autograd/ops/loss.h>
#include <brigade/autograd/ops/margin_loss.h>
#include <brigade/autograd/ops/matmul.h>
#include <brigade/autograd/ops/pool.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/ops/shape.h>
#include <brigade/autograd/ops/softmax.h>
