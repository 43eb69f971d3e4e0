// Shared code of the convolution layers: checks of their sizes, and printing.
#pragma once

#include <brigade/core/error.h>
#include <brigade/core/shape.h>

#include <array>
#include <string>
#include <string_view>

namespace brigade::nn::detail {

// The options of a layer, one entry per spatial dimension. Default values are not printed, as in PyTorch.
struct ConvDescription {
  const char* layer;
  int64_t in, out;
  Shape kernel, stride, padding, dilation, output_padding;
  int64_t groups;
  std::string_view padding_word = {};

  // Throws ValueError.
  void check() const {
    if (in < 1 || out < 1 || groups < 1 || in % groups != 0 || out % groups != 0) {
      throw ValueError(
          "{}: in_channels and out_channels must be at least 1 and divisible by groups, got {} and {} with groups={}",
          layer, in, out, groups);
    }
    for (int d = 0; d < kernel.size(); ++d) {
      if (kernel[d] < 1 || stride[d] < 1 || dilation[d] < 1 || padding[d] < 0) {
        throw ValueError(
            "{}: kernel_size, stride and dilation must be at least 1 and padding at least 0, got {}, {}, {} and {}",
            layer, kernel, stride, dilation, padding);
      }
      if (padding_word == "same" && stride[d] != 1)
        throw ValueError("{}: padding \"same\" is for a stride of 1, got {}", layer, stride);
      if (output_padding[d] < 0 || output_padding[d] >= std::max(stride[d], dilation[d])) {
        throw ValueError("{}: output_padding must be at least 0 and below the larger of stride and dilation, got {}",
                         layer, output_padding);
      }
    }
  }

  std::string text(bool bias) const {
    const int spatial = kernel.size();
    std::string text = std::to_string(in) + ", " + std::to_string(out) + ", kernel_size=" + to_string(kernel) +
                       ", stride=" + to_string(stride);
    if (!padding_word.empty()) {
      text += ", padding=" + std::string(padding_word);
    } else if (padding != Shape::filled(spatial, 0)) {
      text += ", padding=" + to_string(padding);
    }
    if (dilation != Shape::filled(spatial, 1)) text += ", dilation=" + to_string(dilation);
    if (output_padding != Shape::filled(spatial, 0)) text += ", output_padding=" + to_string(output_padding);
    if (groups != 1) text += ", groups=" + std::to_string(groups);
    if (!bias) text += ", bias=false";
    return text;
  }
};

inline Shape shape_of(const std::array<int64_t, 2>& values) { return {values[0], values[1]}; }

}  // namespace brigade::nn::detail
