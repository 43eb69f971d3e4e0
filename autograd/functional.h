// All differentiable operations.
#pragma once

#include <brigade/autograd/backward.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/ops/activation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/attention.h>
#include <brigade/autograd/ops/conv.h>
#include <brigade/autograd/ops/elementwise.h>
#include <brigade/autograd/ops/indexing.h>
#include <brigade/autograd/ops/loss.h>
#include <brigade/autograd/ops/matmul.h>
#include <brigade/autograd/ops/normalization.h>
#include <brigade/autograd/ops/pool.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/ops/shape.h>
