// The npy format of NumPy (numpy.lib.format): one array in a file.
//
// A file is: "\x93NUMPY"; a version, 1.0, 2.0 or 3.0; the length of the header (2 bytes, from 2.0
// on 4); the header, a Python dictionary such as {'descr': '<f4', 'fortran_order': False, 'shape':
// (2, 3), }; then the elements.
//
// Nothing in a file is trusted: reading throws IoError that names the file, the field, its content
// and what was expected, and allocates no memory for data that the file does not contain.
#pragma once

#include <brigade/core/tensor.h>

#include <string>

namespace brigade {

// Reads one array, of either byte order. An array in Fortran order becomes a tensor with such
// strides (a transpose of the data in memory), as in NumPy. Throws IoError; DTypeError for an
// element type that Brigade does not have (int16, complex64, records, ...).
Tensor load_npy(const std::string& path);

// Writes what numpy.save writes for the same array, byte for byte: version 1.0, little endian, in
// Fortran order where the tensor is a transpose of that kind. Any strides, any device. The file
// appears whole or not at all (core/atomic_file.h). Throws ValueError for an undefined tensor,
// DTypeError for bfloat16, for which NumPy has no name, IoError when writing fails.
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace brigade
