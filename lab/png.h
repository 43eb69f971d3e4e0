// Writes PNG files with libpng, if the program was built with it.
#pragma once

#include <brigade/core/tensor.h>

#include <string>

namespace brigade::lab {

bool has_png() noexcept;
// Throws IoError that says what to install when has_png() is false.
void require_png();
// Writes images [n, 1, H, W] with values from 0 (black) to 1 (white) as a sheet with `columns` images per row; each
// image pixel is `scale` pixels wide and high. Values outside are clamped. Throws ShapeError for another shape;
// IoError when the file cannot be written, or without libpng.
void write_png(const std::string& path, const Tensor& images, int64_t columns, int64_t scale = 8);

}  // namespace brigade::lab
