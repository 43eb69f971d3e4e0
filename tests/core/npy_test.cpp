#include <brigade/core/npy.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>

#include <core/error_of.h>
#include <core/temporary_folder.h>

#include <doctest/doctest.h>

namespace brigade::test::npy_test {
using test::error_of;
using test::read_bytes;
using test::TemporaryFolder;
using test::write_bytes;

namespace {

const std::string kData = BRIGADE_TEST_DATA;

std::string file_of(const std::string& header, size_t data_bytes, char version = 1) {
  const size_t length = header.size();
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  for (int shift = 0; shift < (version == 1 ? 16 : 32); shift += 8)
    bytes += static_cast<char>(length >> shift);
  return bytes + header + std::string(data_bytes, '\0');
}

const std::vector<double> kCounting = {0, 1, 2, 3, 4, 5};

}  // namespace

TEST_CASE("npy: files that NumPy wrote are read, of every dtype, byte order, version and layout (committed files)") {
  struct Row {
    const char* name;
    DType dtype;
  };
  for (const Row& row : std::vector<Row>{{"float64", kFloat64},
                                         {"float64_big", kFloat64},
                                         {"float32", kFloat32},
                                         {"float32_big", kFloat32},
                                         {"float16", kFloat16},
                                         {"float16_big", kFloat16},
                                         {"int64", kInt64},
                                         {"int64_big", kInt64},
                                         {"int32", kInt32},
                                         {"int32_big", kInt32},
                                         {"uint8", kUInt8},
                                         {"bool", kBool},
                                         {"fortran", kFloat32},
                                         {"fortran_big", kInt32},
                                         {"version2", kFloat32},
                                         {"version3", kFloat32}}) {
    CAPTURE(row.name);
    const Tensor read = load_npy(kData + "/" + row.name + ".npy");
    CHECK(read.dtype() == row.dtype);
    CHECK(read.sizes() == Shape{2, 3});
    CHECK(read.to_vector<double>() == (row.dtype == kBool ? std::vector<double>{0, 1, 0, 1, 0, 1} : kCounting));
    CHECK(read.is_contiguous() == (std::string(row.name).find("fortran") == std::string::npos));
  }
  CHECK(load_npy(kData + "/fortran.npy").strides() == Shape{1, 2});
  CHECK(load_npy(kData + "/scalar.npy").sizes() == Shape{});
  CHECK(load_npy(kData + "/scalar.npy").to_vector<float>() == std::vector<float>{2.5F});
  CHECK(load_npy(kData + "/empty.npy").sizes() == Shape{0, 3});
}

TEST_CASE("npy: what NumPy wrote is written again byte for byte (committed files)") {
  const TemporaryFolder folder;
  for (const char* name :
       {"float64", "float32", "float16", "int64", "int32", "uint8", "bool", "fortran", "scalar", "empty"}) {
    CAPTURE(name);
    const std::string given = kData + "/" + name + ".npy";
    save_npy(folder / "again", load_npy(given));
    CHECK(read_bytes(folder / "again") == read_bytes(given));
  }
  // The other files are rewritten as version 1.0, little endian.
  for (const auto& [name, same] : std::vector<std::pair<std::string, std::string>>{
           {"float32_big", "float32"}, {"int64_big", "int64"}, {"version2", "float32"}, {"version3", "float32"}}) {
    CAPTURE(name);
    save_npy(folder / "again", load_npy(kData + "/" + name + ".npy"));
    CHECK(read_bytes(folder / "again") == read_bytes(kData + "/" + same + ".npy"));
  }
}

TEST_CASE("npy: views are written in an order that the format has") {
  const TemporaryFolder folder;
  const Tensor matrix = tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const auto again = [&](const Tensor& saved) {
    save_npy(folder / "f", saved);
    return load_npy(folder / "f");
  };
  CHECK(again(view::transpose(matrix, 0, 1)).to_vector<float>() == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(again(view::transpose(matrix, 0, 1)).strides() == Shape{1, 3});
  CHECK(again(view::slice(matrix, 1, 1, 3)).to_vector<float>() == std::vector<float>{2, 3, 5, 6});
  CHECK(again(view::slice(matrix, 1, 1, 3)).is_contiguous());
  CHECK(again(view::transpose(view::slice(matrix, 1, 1, 3), 0, 1)).to_vector<float>() ==
        std::vector<float>{2, 5, 3, 6});
  const Tensor cube = tensor(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}, {2, 2, 2});
  CHECK(again(view::permute(cube, {1, 0, 2})).to_vector<float>() == std::vector<float>{0, 1, 4, 5, 2, 3, 6, 7});
  CHECK(again(view::permute(cube, {2, 1, 0})).to_vector<float>() == std::vector<float>{0, 4, 2, 6, 1, 5, 3, 7});
}

TEST_CASE("npy: hostile files are named with their field and what was expected") {
  const TemporaryFolder folder;
  const auto header = [](const std::string& descr, const std::string& fortran, const std::string& shape) {
    return "{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  };
  const auto shaped = [&](const std::string& shape) { return header("'<f4'", "False", shape); };
  const std::string whole = "; expected a tuple of whole numbers from 0 to 9223372036854775807";
  const std::string descr = "; expected a byte order and a type, such as '<f4'";
  struct Row {
    std::string bytes, message;
  };
  std::string ones = "(";
  for (int i = 0; i < 65; ++i)
    ones += "1,";
  for (const Row& row : std::vector<Row>{
           {"", "the file does not begin with \"\\x93NUMPY\" and a version; expected an npy file"},
           {"\x93NUMPY\1", "the file does not begin with \"\\x93NUMPY\" and a version; expected an npy file"},
           {"\x93NUMPI\1\0\0\0\0\0", "the file does not begin with \"\\x93NUMPY\" and a version; expected an npy file"},
           {std::string("\x93NUMPY\0\0\0\0", 10), "version 0.0; expected 1.0, 2.0 or 3.0"},
           {std::string("\x93NUMPY\4\0\0\0", 10), "version 4.0; expected 1.0, 2.0 or 3.0"},
           {std::string("\x93NUMPY\1\1\0\0", 10), "version 1.1; expected 1.0, 2.0 or 3.0"},
           {std::string("\x93NUMPY\1\0\5", 9), "the file has 9 bytes; expected at least 10"},
           {std::string("\x93NUMPY\2\0\5\0\0", 11), "the file has 11 bytes; expected at least 12"},
           {std::string("\x93NUMPY\1\0\xff\xff{}", 12), "header length 65535; expected at most 2, what the file holds"},
           {std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14),
            "header length 4294967295; expected at most 2, what the file holds"},
           {file_of("", 0), "the header has the end of the header at byte 1; expected \"{\""},
           {file_of("[]", 0), "the header has \"[]\" at byte 1; expected \"{\""},
           {file_of("{}", 0), "the header has no 'descr'; expected descr, fortran_order and shape"},
           {file_of("{'descr': '<f4'}", 0),
            "the header has no 'fortran_order'; expected descr, fortran_order and shape"},
           {file_of("{'descr': '<f4', 'fortran_order': False}", 0),
            "the header has no 'shape'; expected descr, fortran_order and shape"},
           {file_of("{'descr' '<f4'}", 0), "the header has \"'<f4'}\" at byte 10; expected \":\""},
           {file_of("{'descr': '<f4' 'shape': ()}", 0),
            "the header has \"'shape': ()}\" at byte 17; expected \",\" or \"}\""},
           {file_of("{descr: '<f4'}", 0), "the header has \"descr: '<f4'}\" at byte 2; expected a key in quotes"},
           {file_of("{'descr: ", 0), "the header has \"'descr: \" at byte 2; expected a key in quotes"},
           {file_of("{'descr': '<f4', 'descr': '<f4'}", 0), "the header has 'descr' twice; expected it once"},
           {file_of("{'fortran_order': True, 'fortran_order': True}", 0),
            "the header has 'fortran_order' twice; expected it once"},
           {file_of("{'shape': (), 'shape': ()}", 0), "the header has 'shape' twice; expected it once"},
           {file_of("{'order': 'C'}", 0), "the header has the key \"order\"; expected descr, fortran_order and shape"},
           {file_of(shaped("()") + " x", 4), "the header goes on with \"x\" after its end; expected spaces"},
           {file_of(header("4", "False", "()"), 4),
            "'descr' is \"4, 'fortran_order': \"; expected a text such as '<f4'"},
           {file_of(header("''", "False", "()"), 4), "'descr' is \"\"" + descr},
           {file_of(header("'f4'", "False", "()"), 4), "'descr' is \"f4\"" + descr},
           {file_of(header("'|f4'", "False", "()"), 4),
            "'descr' is \"|f4\"; expected a byte order, < or >, for float32"},
           {file_of(header("'<f4'", "0", "()"), 4), "'fortran_order' is \"0, 'shape': (), }\"; expected True or False"},
           {file_of(shaped("3"), 12), "'shape' is \"3, }\"" + whole},
           {file_of(shaped("[3]"), 12), "'shape' is \"[3], }\"" + whole},
           {file_of(shaped("(-1,)"), 12), "'shape' is \"-1,), }\"" + whole},
           {file_of(shaped("(3)"), 12), "'shape' is \"), }\"; expected a comma after its only size, or more sizes"},
           {file_of(shaped("(1.5, 2)"), 12),
            "'shape' is \".5, 2), }\"; expected a comma after its only size, or more sizes"},
           {file_of(shaped("(2, 1.5)"), 12), "'shape' is \".5), }\"; expected \",\" or \")\" after a size"},
           {file_of(shaped("(3,,)"), 12), "'shape' is \",), }\"" + whole},
           {file_of(shaped("(,)"), 12), "'shape' is \",), }\"" + whole},
           {file_of(shaped("('3',)"), 12), "'shape' is \"'3',), }\"" + whole},
           {file_of(shaped("(9223372036854775808,)"), 12), "'shape' is \"9223372036854775808,\"" + whole},
           {file_of("{'shape': (2,", 0), "'shape' is the end of the header" + whole},
           {file_of(shaped(ones + ")"), 4), "'shape' has more than 64 sizes; expected at most 64"},
           {file_of(shaped("(9223372036854775807,)"), 4),
            "'shape' (9223372036854775807,) of float32 overflows; expected less than 2^63 bytes"},
           {file_of(shaped("(4294967296, 4294967296)"), 0),
            "'shape' (4294967296, 4294967296) of float32 overflows; expected less than 2^63 bytes"},
           {file_of(shaped("(0, 9223372036854775807)"), 0),
            "'shape' (0, 9223372036854775807) of float32 overflows; expected less than 2^63 bytes"},
           {file_of(shaped("(1000000000, 1000)"), 4),
            "4 bytes follow the header; expected 4000000000000 for <f4 of shape (1000000000, 1000)"},
           {file_of(shaped("(3,)"), 8), "8 bytes follow the header; expected 12 for <f4 of shape (3,)"},
           {file_of(shaped("()"), 5), "5 bytes follow the header; expected 4 for <f4 of shape ()"},
           {file_of(header("'|b1'", "False", "(2,)"), 1) + "\x03", "byte 1 of its bool data is 3, expected 0 or 1"}}) {
    const std::string path = folder / "hostile.npy";
    write_bytes(path, row.bytes);
    CAPTURE(row.bytes.substr(0, 200));
    CHECK_THROWS_AS(load_npy(path), IoError);
    CHECK(error_of([&] { load_npy(path); }) == path + ": " + row.message);
  }
  const std::string path = folder / "hostile.npy";
  write_bytes(path, file_of(std::string((1 << 20) + 1, ' '), 0, 2));
  CHECK(error_of([&] { load_npy(path); }) == path + ": header length 1048577; expected at most 1048576");
}

TEST_CASE("npy: arrays that Brigade cannot hold are named") {
  const TemporaryFolder folder;
  const std::string path = folder / "f.npy";
  const auto message = [&](const std::string& descr, const std::string& shape, size_t bytes) {
    write_bytes(path, file_of("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}", bytes));
    return error_of([&] { load_npy(path); });
  };
  const std::string convert =
      "; expected one of f8, f4, f2, i8, i4, u1, b1: convert the array with .astype before it is saved";
  CHECK(message("'<i2'", "(2,)", 4) == path + ": 'descr' is \"<i2\"" + convert);
  CHECK_THROWS_AS(load_npy(path), DTypeError);
  CHECK(message("'<c8'", "()", 8) == path + ": 'descr' is \"<c8\"" + convert);
  CHECK(message("'|O'", "()", 8) == path + ": 'descr' is \"|O\"" + convert);
  CHECK(message("'<V2'", "()", 2) == path + ": 'descr' is \"<V2\"" + convert);
  CHECK(message("[('a', '<f4')]", "()", 4) ==
        path +
            ": 'descr' is \"[('a', '<f4')], 'for\", an array of records; expected elements of one type, such as '<f4'");
  CHECK_THROWS_AS(load_npy(path), DTypeError);
  CHECK(message("'|u1'", "(1,1,1,1,1,1,1,1,1,2)", 2) == "no error");
  CHECK(load_npy(path).sizes() == Shape{1, 1, 1, 1, 1, 1, 1, 1, 1, 2});
}

TEST_CASE("npy: what cannot be saved is refused before the old file is touched") {
  const TemporaryFolder folder;
  const std::string path = folder / "f.npy";
  save_npy(path, scalar_tensor(1.0));
  const std::string before = read_bytes(path);
  CHECK_THROWS_AS(save_npy(path, empty({2}, kBFloat16)), DTypeError);
  CHECK(error_of([&] { save_npy(path, empty({2}, kBFloat16)); }) ==
        "save_npy: NumPy has no bfloat16; convert with .to(kFloat32), which keeps the values, or use save_safetensors");
  CHECK_THROWS_AS(save_npy(path, Tensor()), ValueError);
  CHECK(error_of([&] { save_npy(path, Tensor()); }) == "save_npy: the tensor is undefined; expected a tensor");
  CHECK(read_bytes(path) == before);
}

}  // namespace brigade::test::npy_test
