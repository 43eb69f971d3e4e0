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
#include <brigade/autograd/ops/dropout.h>
#include <brigade/autograd/ops/embedding.h>
#include <brigade/autograd/ops/gather.h>
#include <brigade/autograd/ops/interpolate.h>
#include <brigade/autograd/ops/layer_norm.h>
#include <brigade/autograd/ops/loss.h>
#include <brigade/autograd/ops/matmul.h>
#include <brigade/autograd/ops/pad.h>
#include <brigade/autograd/ops/pool.h>
#include <brigade/autograd/ops/rearrange.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/ops/scan.h>
#include <brigade/autograd/ops/shape.h>
#include <brigade/autograd/ops/softmax.h>
#include <brigade/autograd/ops/sort.h>
#include <brigade/autograd/ops/triangle.h>
