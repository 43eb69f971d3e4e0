// Datasets, samplers, the loader, and readers of well-known files.
#pragma once

#include <brigade/data/cifar10.h>
#include <brigade/data/data_loader.h>
#include <brigade/data/mnist.h>
#include <brigade/data/subset.h>
#include <brigade/data/tensor_dataset.h>
