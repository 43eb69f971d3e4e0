// Datasets, samplers, the loader, and readers of well-known files.
#pragma once

#include <brigade/data/data_loader.h>
#include <brigade/data/dataset.h>
#include <brigade/data/image_dataset.h>
#include <brigade/data/subset.h>
