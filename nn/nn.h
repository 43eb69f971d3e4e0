// All layers.
#pragma once

#include <brigade/nn/activation.h>
#include <brigade/nn/any_module.h>
#include <brigade/nn/batch_norm.h>
#include <brigade/nn/check.h>
#include <brigade/nn/container.h>
#include <brigade/nn/conv.h>
#include <brigade/nn/conv_transpose.h>
#include <brigade/nn/flatten.h>
#include <brigade/nn/fold.h>
#include <brigade/nn/functional.h>
#include <brigade/nn/gpt.h>
#include <brigade/nn/group_norm.h>
#include <brigade/nn/init.h>
#include <brigade/nn/layer_norm.h>
#include <brigade/nn/linear.h>
#include <brigade/nn/loss.h>
#include <brigade/nn/module.h>
#include <brigade/nn/multihead_attention.h>
#include <brigade/nn/parametric_activation.h>
#include <brigade/nn/pooling.h>
#include <brigade/nn/transformer.h>
#include <brigade/nn/upsample.h>
