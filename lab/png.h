// Pictures as PNG files, by libpng where the program was built with it.
#pragma once

#include <brigade/core/tensor.h>

#include <string>

namespace brigade::lab {

bool has_png() noexcept;
// Throws IoError that says what to install where has_png() is false.
void require_png();
// Images [n, 1, H, W] of values from 0 (black) to 1 (white) as a sheet with `columns` of them in a
// row; each of their pixels is `scale` pixels wide and high. Values outside are clamped. Throws
// ShapeError for another shape; IoError where the file cannot be written, or without libpng.
void write_png(const std::string& path, const Tensor& images, int64_t columns, int64_t scale = 8);

}  // namespace brigade::lab
