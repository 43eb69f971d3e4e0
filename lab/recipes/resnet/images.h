// The images of the recipe `resnet`: CIFAR-10 from a folder, or the digits, enlarged.
#pragma once

#include <brigade/data/dataset.h>

#include <memory>
#include <string>

namespace brigade::lab {

struct ImageSets {
  std::shared_ptr<data::Dataset<>> train, test;
};

// Of ten classes each. `folder`: of the five binary files and the test file of CIFAR-10, [3, 32, 32]; those
// to train on are shifted by up to 4 pixels and mirrored at random. "": the digits, [1, 16, 16]. Throws
// IoError as data::CIFAR10 and load_digits.
ImageSets load_images(const std::string& folder);

}  // namespace brigade::lab
