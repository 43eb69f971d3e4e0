#include <brigade/core/safetensors.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>

#include <core/error_of.h>
#include <core/temporary_folder.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace brigade::test::safetensors_test {
using test::error_of;
using test::read_bytes;
using test::TemporaryFolder;
using test::write_bytes;

namespace {

const std::string kData = BRIGADE_TEST_DATA;

// A file with this header, followed by `data_bytes` zeros.
std::string file_of(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\0');
}

std::vector<std::pair<std::string, Tensor>> one_of_each_dtype() {
  Tensor halves = empty({3}, kFloat16);
  for (int i = 0; i < 3; ++i)
    halves.data_ptr<float16>()[i] = float16(0.1F * static_cast<float>(i + 1));
  Tensor bfloats = empty({2, 2}, kBFloat16);
  for (int i = 0; i < 4; ++i)
    bfloats.data_ptr<bfloat16>()[i] = bfloat16(1.5F - static_cast<float>(i));
  const bool flags[] = {true, false, true};
  return {{"flags", from_values(std::span<const bool>(flags), {3})},
          {"bytes", tensor<uint8_t>({0, 7, 255})},
          {"halves", halves},
          {"bfloats", bfloats},
          {"ints", tensor<int32_t>({-1, std::numeric_limits<int32_t>::min()})},
          {"longs", tensor<int64_t>({std::numeric_limits<int64_t>::max(), -5})},
          {"floats", tensor(std::vector<float>{1, 2, 3, -0.0F, 5e-45F, INFINITY}, {2, 3})},
          {"doubles", tensor<double>({0.1, -1e300})},
          {"none", empty({0, 4}, kFloat32)},
          {"scalar", scalar_tensor(2.5)}};
}

void check_same(const Tensor& a, const Tensor& b) {
  REQUIRE(a.dtype() == b.dtype());
  REQUIRE(a.sizes() == b.sizes());
  CHECK((a.numel() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0));
}

}  // namespace

TEST_CASE("safetensors: what was saved comes back, read or mapped") {
  const TemporaryFolder folder;
  const std::string path = folder / "all.safetensors";
  const auto saved = one_of_each_dtype();
  const SafetensorsMetadata metadata = {{"format", "pt"}, {"line", "a\n\"b\" \\ \x01 ü"}, {"", ""}};
  save_safetensors(path, saved, metadata);
  const Safetensors loaded = load_safetensors(path);
  CHECK(loaded.metadata == metadata);
  CHECK(loaded.tensors.size() == saved.size());
  const SafetensorsFile file(path);
  CHECK(file.path() == path);
  for (const auto& [name, tensor] : saved) {
    CAPTURE(name);
    REQUIRE(file.contains(name));
    check_same(file.tensor(name), tensor);
    check_same(file.mapped(name), tensor);
    CHECK(reinterpret_cast<uintptr_t>(file.mapped(name).raw_data()) % tensor.itemsize() == 0);
  }
  CHECK_FALSE(file.contains("other"));
  // Wide dtypes first, then by name.
  std::string order;
  for (const SafetensorsEntry& entry : file.entries())
    order += entry.name + ":" + entry.dtype + " ";
  CHECK(order ==
        "longs:I64 doubles:F64 floats:F32 none:F32 scalar:F32 ints:I32 bfloats:BF16 halves:F16 bytes:U8 flags:BOOL ");
}

TEST_CASE(
    "safetensors: a file that the Python package wrote is read, and written again byte for byte (committed file)") {
  const TemporaryFolder folder;
  const std::string given = kData + "/python.safetensors";
  const Safetensors loaded = load_safetensors(given);
  REQUIRE(loaded.tensors.size() == 11);
  const SafetensorsFile file(given);
  CHECK(file.metadata() == SafetensorsMetadata{{"made by", "safetensors for Python, ü\n"}});
  CHECK(file.tensor("f64").to_vector<double>() == std::vector<double>{0.1, -1e300, 5e-324});
  CHECK(file.tensor("f32").to_vector<float>() == std::vector<float>{0, 1.5, 3, 4.5, 6, 7.5});
  CHECK(file.tensor("f32").sizes() == Shape{2, 3});
  CHECK(file.tensor("f16").to_vector<float>() == std::vector<float>{1, -2, 65504});
  CHECK(file.tensor("bf16").to_vector<float>() == std::vector<float>{1, -2, 0.5});
  CHECK(file.tensor("i64").to_vector<int64_t>() == std::vector<int64_t>{-1, std::numeric_limits<int64_t>::max()});
  CHECK(file.tensor("i32").to_vector<int32_t>() == std::vector<int32_t>{-7, 8});
  CHECK(file.tensor("u8").to_vector<int64_t>() == std::vector<int64_t>{0, 255});
  CHECK(file.tensor("bool").to_vector<int64_t>() == std::vector<int64_t>{1, 0, 1});
  CHECK(file.tensor("empty").sizes() == Shape{0, 3});
  CHECK(file.tensor("scalar").to_vector<float>() == std::vector<float>{2.5F});
  CHECK(file.tensor("name with \"quotes\" and ü").to_vector<float>() == std::vector<float>{9});
  save_safetensors(folder / "again", loaded.tensors, loaded.metadata);
  CHECK(read_bytes(folder / "again") == read_bytes(given));
}

TEST_CASE("safetensors: views are written in row-major order") {
  const TemporaryFolder folder;
  const Tensor matrix = tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  save_safetensors(folder / "f", {{"t", view::transpose(matrix, 0, 1)},
                                  {"column", view::select(matrix, 1, 2)},
                                  {"steps", view::slice(matrix, 1, 0, 3, 2)},
                                  {"wide", view::expand(view::slice(matrix, 0, 1, 2), {2, 3})}});
  const SafetensorsFile file(folder / "f");
  CHECK(file.tensor("t").to_vector<float>() == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(file.tensor("t").sizes() == Shape{3, 2});
  CHECK(file.tensor("column").to_vector<float>() == std::vector<float>{3, 6});
  CHECK(file.tensor("steps").to_vector<float>() == std::vector<float>{1, 3, 4, 6});
  CHECK(file.tensor("wide").to_vector<float>() == std::vector<float>{4, 5, 6, 4, 5, 6});
}

TEST_CASE("safetensors: mapped tensors share the mapping, outlive the reader, and never write to the file") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  save_safetensors(path, {{"a", tensor<float>({1, 2})}, {"b", tensor<float>({3})}});
  const std::string before = read_bytes(path);
  Tensor a;
  {
    SafetensorsFile opened(path);
    const SafetensorsFile file = std::move(opened);
    a = file.mapped("a");
    CHECK(static_cast<char*>(file.mapped("b").raw_data()) - static_cast<char*>(a.raw_data()) == 8);
  }
  a.data_ptr<float>()[0] = 17;
  CHECK(a.to_vector<float>() == std::vector<float>{17, 2});
  CHECK(read_bytes(path) == before);
}

TEST_CASE("safetensors: bytes that are not aligned for their dtype are copied") {
  const TemporaryFolder folder;
  std::string bytes = file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                              R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                              5);
  const float value = 3.25F;
  std::memcpy(bytes.data() + bytes.size() - 4, &value, 4);
  write_bytes(folder / "f", bytes);
  const SafetensorsFile file(folder / "f");
  CHECK(file.mapped("b").to_vector<float>() == std::vector<float>{3.25F});
  CHECK(reinterpret_cast<uintptr_t>(file.mapped("b").raw_data()) % 4 == 0);
}

TEST_CASE("safetensors: a file may be empty of tensors") {
  const TemporaryFolder folder;
  save_safetensors(folder / "f", {});
  CHECK(read_bytes(folder / "f") == file_of("{}      ", 0));
  CHECK(load_safetensors(folder / "f").tensors.empty());
}

TEST_CASE("safetensors: hostile files are named with their tensor, field and what was expected") {
  const TemporaryFolder folder;
  const auto entry = [](const std::string& fields) { return "{\"w\":{" + fields + "}}"; };
  const std::string dtype = R"("dtype":"F32",)";
  struct Row {
    std::string bytes, message;
  };
  const std::string large = "9223372036854775807";
  const std::vector<Row> rows = {
      {"", "the file has 0 bytes; expected at least 8, the header length"},
      {"1234567", "the file has 7 bytes; expected at least 8, the header length"},
      {std::string("\x10\0\0\0\0\0\0\0{}", 10),
       "header length 16 is more than the file holds; expected at most 2 (is it a safetensors file, and whole?)"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10),
       "header length 18446744073709551615 is more than the file holds; expected at most 2 (is it a safetensors file, "
       "and whole?)"},
      {file_of("", 0), "the header begins with \"\"; expected \"{\""},
      {file_of(" {}", 0), "the header begins with \" \"; expected \"{\""},
      {file_of("[]", 0), "the header begins with \"[\"; expected \"{\""},
      {file_of("{", 0), "the header is not valid JSON at byte 2, after \"{\""},
      {file_of("{}}", 0), "the header is not valid JSON at byte 3, after \"{}}\""},
      {file_of("{} x", 0), "the header is not valid JSON at byte 4, after \"{} x\""},
      {file_of(std::string("{}\0", 3), 0), "the header holds a zero at byte 3; expected JSON"},
      {file_of("{\"\xff\":1}", 0), "the header is not valid JSON at byte 3, after \"{\\\"\\xff\""},
      {file_of("{\"a\":1e999}", 0),
       "the header is not valid JSON at byte 10, after \"{\\\"a\\\":1e999\"; a number is out of range"},
      {file_of("{\"a\":" + std::string(100'000, '[') + "}", 0),
       "tensor \"a\" is a list; expected an object with dtype, shape and data_offsets"},
      {file_of("{\"a\":null}", 0), "tensor \"a\" is null; expected an object with dtype, shape and data_offsets"},
      {file_of("{\"a\":-3}", 0), "tensor \"a\" is -3; expected an object with dtype, shape and data_offsets"},
      {file_of("{\"\\u0000\\n\":true}", 0),
       "tensor \"\\x00\\x0a\" is true; expected an object with dtype, shape and data_offsets"},
      {file_of("{\"" + std::string(50, 'a') + std::string(50, 'b') + "\":7}", 0),
       "tensor \"" + std::string(40, 'a') + "..." + std::string(40, 'b') +
           "\" is 7; expected an object with dtype, shape and data_offsets"},
      {file_of("{\"__metadata__\":3}", 0), "__metadata__ is 3; expected an object of texts by name"},
      {file_of("{\"__metadata__\":{\"a\":1}}", 0), "__metadata__: \"a\" is 1; expected a text"},
      {file_of("{\"__metadata__\":{\"a\":{}}}", 0), "__metadata__: \"a\" is an object; expected a text"},
      {file_of("{\"__metadata__\":{\"a\":[]}}", 0), "__metadata__: \"a\" is a list; expected a text"},
      {file_of("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0),
       "__metadata__: \"a\" appears twice; expected each name once"},
      {file_of(entry(""), 0), "tensor \"w\": dtype is missing; expected dtype, shape and data_offsets"},
      {file_of(entry(R"("dtype":"F32","shape":[1])"), 4),
       "tensor \"w\": data_offsets is missing; expected dtype, shape and data_offsets"},
      {file_of(entry(R"("dtype":"F32","data_offsets":[0,4])"), 4),
       "tensor \"w\": shape is missing; expected dtype, shape and data_offsets"},
      {file_of(entry(R"("dtype":"F33")"), 0),
       "tensor \"w\": dtype is \"F33\"; expected a dtype of the format, such as F32, BF16 or I64"},
      {file_of(entry(R"("dtype":"f32")"), 0),
       "tensor \"w\": dtype is \"f32\"; expected a dtype of the format, such as F32, BF16 or I64"},
      {file_of(entry(R"("dtype":4)"), 0), "tensor \"w\": dtype is 4; expected a text such as \"F32\""},
      {file_of(entry(R"("dtype":["F32"])"), 0), "tensor \"w\": dtype is a list; expected a text such as \"F32\""},
      {file_of(entry(R"("dtype":{})"), 0), "tensor \"w\": dtype is an object; expected a text such as \"F32\""},
      {file_of(entry(R"("dtype":"F32","dtype":"F32")"), 0),
       "tensor \"w\": dtype appears twice; expected each field once"},
      {file_of(entry(R"("strides":[1])"), 0),
       "tensor \"w\": unknown field \"strides\"; expected dtype, shape and data_offsets"},
      {file_of(entry(R"("shape":3)"), 0), "tensor \"w\": shape is 3; expected a list of sizes"},
      {file_of(entry(R"("shape":"3")"), 0), "tensor \"w\": shape is \"3\"; expected a list of sizes"},
      {file_of(entry(R"("shape":[-1])"), 0),
       "tensor \"w\": shape holds -1; expected whole numbers from 0 to 9223372036854775807"},
      {file_of(entry(R"("shape":[1.5])"), 0),
       "tensor \"w\": shape holds 1.5; expected whole numbers from 0 to 9223372036854775807"},
      {file_of(entry(R"("shape":[1e3])"), 0),
       "tensor \"w\": shape holds 1e3; expected whole numbers from 0 to 9223372036854775807"},
      {file_of(entry(R"("shape":[9223372036854775808])"), 0),
       "tensor \"w\": shape holds 9223372036854775808; expected whole numbers from 0 to 9223372036854775807"},
      {file_of(entry(R"("shape":[99999999999999999999])"), 0),
       "tensor \"w\": shape holds 99999999999999999999; expected whole numbers from 0 to 9223372036854775807"},
      {file_of(entry(R"("shape":[[1]])"), 0),
       "tensor \"w\": shape holds a list; expected whole numbers from 0 to 9223372036854775807"},
      {file_of(entry(R"("shape":[null])"), 0),
       "tensor \"w\": shape holds null; expected whole numbers from 0 to 9223372036854775807"},
      {file_of(entry("\"shape\":[" +
                     [] {
                       std::string ones = "1";
                       for (int i = 0; i < 64; ++i)
                         ones += ",1";
                       return ones;
                     }() +
                     "]"),
               0),
       "tensor \"w\": shape has more than 64 sizes; expected at most 64"},
      {file_of(entry(R"("data_offsets":[0])"), 0), "tensor \"w\": data_offsets has 1 numbers; expected [begin, end]"},
      {file_of(entry(R"("data_offsets":[0,1,2])"), 0),
       "tensor \"w\": data_offsets has more than 2 numbers; expected [begin, end]"},
      {file_of(entry(R"("data_offsets":[0,-4])"), 0),
       "tensor \"w\": data_offsets holds -4; expected whole numbers from 0 to 9223372036854775807"},
      {file_of(entry(R"("data_offsets":"0,4")"), 0), "tensor \"w\": data_offsets is \"0,4\"; expected [begin, end]"},
      {file_of(entry(dtype + R"("shape":[1],"data_offsets":[0,4]})" + R"(,"w":{)" + dtype +
                     R"("shape":[1],"data_offsets":[4,8])"),
               8),
       "tensor \"w\" appears twice; expected each name once"},
      {file_of(entry(dtype + R"("shape":[1],"data_offsets":[4,0])"), 4),
       "tensor \"w\": data_offsets [4, 0] end before they begin; expected begin <= end"},
      {file_of(entry(dtype + R"("shape":[2],"data_offsets":[0,8])"), 4),
       "tensor \"w\": data_offsets [0, 8] reach outside the data; expected at most 4, the bytes that follow the "
       "header"},
      {file_of(entry(dtype + R"("shape":[1],"data_offsets":[18446744073709551612,18446744073709551615])"), 4),
       "tensor \"w\": data_offsets [18446744073709551612, 18446744073709551615] reach outside the data; expected at "
       "most 4, the bytes that follow the header"},
      {file_of(entry(dtype + R"("shape":[2],"data_offsets":[0,4])"), 4),
       "tensor \"w\": data_offsets [0, 4] hold 4 bytes; expected 8 for F32 of shape [2]"},
      {file_of(entry(dtype + R"("shape":[],"data_offsets":[0,0])"), 0),
       "tensor \"w\": data_offsets [0, 0] hold 0 bytes; expected 4 for F32 of shape []"},
      {file_of(entry(dtype + R"("shape":[0],"data_offsets":[0,4])"), 4),
       "tensor \"w\": data_offsets [0, 4] hold 4 bytes; expected 0 for F32 of shape [0]"},
      {file_of(entry(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"), 2),
       "tensor \"w\": shape [3] of F4 makes 12 bits; expected whole bytes"},
      {file_of(entry(dtype + "\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]"), 0),
       "tensor \"w\": shape [4294967296, 4294967296] of F32 overflows; expected less than 2^63 bits"},
      {file_of(entry(dtype + "\"shape\":[" + large + "],\"data_offsets\":[0,4]"), 4),
       "tensor \"w\": shape [9223372036854775807] of F32 overflows; expected less than 2^63 bits"},
      {file_of(entry(dtype + "\"shape\":[0," + large + ",4],\"data_offsets\":[0,0]"), 0),
       "tensor \"w\": shape [0, 9223372036854775807, 4] of F32 overflows; expected less than 2^63 bits"},
      {file_of(entry(dtype + R"("shape":[1],"data_offsets":[4,8])"), 8),
       "tensor \"w\": data_offsets [4, 8] leave a hole after the header; expected begin 0"},
      {file_of(entry(dtype + R"("shape":[1],"data_offsets":[0,4]},"v":{"dtype":"U8","shape":[1],"data_offsets":[5,6])"),
               6),
       "tensor \"v\": data_offsets [5, 6] leave a hole after tensor \"w\"; expected begin 4"},
      {file_of(entry(dtype + R"("shape":[1],"data_offsets":[0,4]},"v":{"dtype":"U8","shape":[3],"data_offsets":[3,6])"),
               6),
       "tensor \"v\": data_offsets [3, 6] overlap tensor \"w\"; expected begin 4"},
      {file_of(entry(dtype + R"("shape":[1],"data_offsets":[0,4])"), 9),
       "the tensors end at byte 4 of the data, which has 9; expected them to fill it"},
      {file_of("{}", 3), "the tensors end at byte 0 of the data, which has 3; expected them to fill it"},
  };
  for (const Row& row : rows) {
    const std::string path = folder / "hostile";
    write_bytes(path, row.bytes);
    CAPTURE(row.bytes.substr(0, 200));
    CHECK_THROWS_AS(SafetensorsFile{path}, IoError);
    CHECK(error_of([&] { SafetensorsFile file(path); }) == path + ": " + row.message);
  }
}

TEST_CASE("safetensors: a header above the reference implementation's limit is refused before it is read") {
  const TemporaryFolder folder;
  const std::string path = folder / "sparse";
  write_bytes(path, std::string("\x01\xe1\xf5\x05\0\0\0\0", 8));  // 100,000,001
  std::filesystem::resize_file(path, 100'000'100);
  CHECK(error_of([&] { SafetensorsFile file(path); }) ==
        path + ": header length 100000001 is too large; expected at most 100000000");
}

TEST_CASE("safetensors: tensors that Brigade cannot hold are listed, and named when asked for") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  write_bytes(path, file_of(R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},)"
                            R"("b":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[2,3]},)"
                            R"("c":{"dtype":"F4","shape":[2],"data_offsets":[3,4]},)"
                            R"("d":{"dtype":"BOOL","shape":[2],"data_offsets":[4,6]},)"
                            R"("e":{"dtype":"U8","shape":[1],"data_offsets":[6,7]}})",
                            5) +
                        "\x02\x05");
  const SafetensorsFile file(path);
  CHECK(file.entries().size() == 5);
  const std::string convert =
      "; expected one of F64, F32, F16, BF16, I64, I32, U8, BOOL: convert it where it was written";
  CHECK_THROWS_AS(file.tensor("a"), DTypeError);
  CHECK(error_of([&] { file.tensor("a"); }) == path + ": tensor \"a\" has dtype F8_E4M3" + convert);
  CHECK(error_of([&] { file.mapped("c"); }) == path + ": tensor \"c\" has dtype F4" + convert);
  CHECK(file.tensor("b").sizes() == Shape{1, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK_THROWS_AS(file.tensor("d"), IoError);
  CHECK(error_of([&] { file.tensor("d"); }) == path + ": tensor \"d\": byte 1 of its bool data is 2, expected 0 or 1");
  CHECK(error_of([&] { file.mapped("d"); }) == path + ": tensor \"d\": byte 1 of its bool data is 2, expected 0 or 1");
  CHECK(file.tensor("e").to_vector<int64_t>() == std::vector<int64_t>{5});
  CHECK_THROWS_AS(file.tensor("x\n"), ValueError);
  CHECK(error_of([&] { file.tensor("x\n"); }) ==
        path + " holds no tensor \"x\\x0a\"; it holds 5: \"a\", \"b\", \"c\", \"d\", \"e\"");
}

TEST_CASE("safetensors: a file that becomes shorter after it was opened is named") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  save_safetensors(path, {{"w", tensor<float>({1, 2, 3, 4})}});
  const SafetensorsFile file(path);
  const auto size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, size - 4);
  CHECK(error_of([&] { file.tensor("w"); }) == path + ": the file ends at byte " + std::to_string(size - 4) +
                                                   ", expected " + std::to_string(size) +
                                                   " bytes; it has become shorter while it was read");
}

TEST_CASE("safetensors: paths that cannot be read are named with the reason") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { SafetensorsFile file(folder / "none"); }) ==
        "cannot open " + folder / "none" + ": No such file or directory");
  CHECK(error_of([&] { SafetensorsFile file(folder.text()); }) ==
        "cannot read " + folder.text() + ": it is not a regular file");
  CHECK(error_of([&] { SafetensorsFile file("/dev/zero"); }) == "cannot read /dev/zero: it is not a regular file");
}

TEST_CASE("safetensors: what cannot be saved is refused before the old file is touched") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  const Tensor one = scalar_tensor(1.0);
  save_safetensors(path, {{"a", one}});
  const std::string before = read_bytes(path);
  const auto message = [&](const std::vector<std::pair<std::string, Tensor>>& tensors,
                           const SafetensorsMetadata& metadata = {}) {
    CHECK_THROWS_AS(save_safetensors(path, tensors, metadata), ValueError);
    return error_of([&] { save_safetensors(path, tensors, metadata); });
  };
  CHECK(message({{"a", one}, {"b", Tensor()}}) == "save_safetensors: tensor \"b\" is undefined; leave it out");
  CHECK(message({{"a", one}, {"a", scalar_tensor<double>(1.0)}}) ==
        "save_safetensors: two tensors are called \"a\"; expected each name once");
  CHECK(message({{"__metadata__", one}}) ==
        "save_safetensors: a tensor cannot be called \"__metadata__\"; the format keeps that name");
  CHECK(message({{"\xc3(", one}}) == "save_safetensors: tensor name \"\\xc3(\" is not UTF-8; expected UTF-8");
  CHECK(message({}, {{"k\xff", ""}}) == "save_safetensors: metadata key \"k\\xff\" is not UTF-8; expected UTF-8");
  CHECK(message({}, {{"k", "\xff"}}) == "save_safetensors: metadata value \"\\xff\" is not UTF-8; expected UTF-8");
  CHECK(message({}, {{"k", std::string(100'000'000, 'x')}}) ==
        "save_safetensors: the header would have 100000032 bytes; expected at most 100000000: fewer tensors, shorter "
        "names or less metadata");
  CHECK(read_bytes(path) == before);
  CHECK(folder.names() == std::vector<std::string>{"f"});
}

TEST_CASE("safetensors: with checksums, the change of any bit is found, and tensors are named") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  const auto saved = one_of_each_dtype();
  const SafetensorsMetadata metadata = {{"a", "text"}, {"z", "3"}};
  save_safetensors(path, saved, metadata, {.checksums = true});
  const std::string whole = read_bytes(path);
  {
    const SafetensorsFile file(path);
    CHECK(file.has_checksums());
    file.verify();
    CHECK(file.metadata() == metadata);
    for (const auto& [name, tensor] : saved)
      check_same(file.tensor(name), tensor);
  }
  // Loaded tensors can be saved again, with and without checksums.
  const Safetensors loaded = load_safetensors(path);
  save_safetensors(folder / "again", loaded.tensors, loaded.metadata, {.checksums = true});
  CHECK(read_bytes(folder / "again") == whole);
  save_safetensors(folder / "without", loaded.tensors, loaded.metadata);
  CHECK_FALSE(SafetensorsFile(folder / "without").has_checksums());
  SafetensorsFile(folder / "without").verify();

  // Flips every bit except those of the checksums' name: without that name a file has no checksums.
  const size_t name = whole.find("brigade/xxh3");
  int unseen = 0;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    if (bit / 8 >= name && bit / 8 < name + 12) continue;
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_bytes(path, damaged);
    unseen += error_of([&] { load_safetensors(path); }) == "no error";
    unseen += error_of([&] { SafetensorsFile(path).verify(); }) == "no error";
  }
  CHECK(unseen == 0);

  std::string damaged = whole;
  damaged.back() ^= 1;  // a bit of the last flag
  write_bytes(path, damaged);
  CHECK(
      error_of([&] { SafetensorsFile(path).verify(); }) ==
      path +
          ": tensor \"flags\": its 3 bytes have the checksum bac0c69c15810e04, expected aed946681f85b77a: the file is "
          "damaged; take another copy");
  CHECK(SafetensorsFile(path).tensor("bytes").to_vector<int64_t>() == std::vector<int64_t>{0, 7, 255});
}

TEST_CASE("safetensors: checksums that are not the file's, or none, are named") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  save_safetensors(path, {{"w", tensor<float>({1, 2})}}, {{"epoch", "12"}}, {.checksums = true});
  const std::string whole = read_bytes(path);
  const auto message = [&](const std::string& before, const std::string& after) {
    std::string changed = whole;
    const size_t place = changed.find(before);
    REQUIRE(place != changed.npos);
    REQUIRE(before.size() == after.size());
    write_bytes(path, changed.replace(place, before.size(), after));
    return error_of([&] { SafetensorsFile file(path); });
  };
  const std::string what_to_do =
      ": the file is damaged, or another program has changed it and kept its checksums; expected the file as it was "
      "saved (without \"brigade/xxh3\" in its metadata nothing is compared)";
  const std::string other_header = path + ": the header is not the one that was saved" + what_to_do;
  CHECK(message("\"12\"", "\"13\"") == other_header);
  CHECK(message("F32", "I32") == other_header);
  CHECK(message("\"brigade/xxh3\":\"", "\"brigade/xxh3\": ") != "no error");
  const size_t place = whole.find("xxh3\":\"") + 7;
  const std::string checksums = whole.substr(place, 33);
  CHECK(message(checksums, "g" + checksums.substr(1)) ==
        path + ": a checksum is not a hexadecimal number of 16 digits" + what_to_do);
  CHECK(message(checksums, checksums.substr(0, 16) + "\",\"k\":\"" + checksums.substr(23)) ==
        path + ": the checksums are not one for the header and one for each tensor" + what_to_do);
  CHECK(error_of([&] {
          save_safetensors(path, {}, {{"brigade/xxh3", ""}});
        }) == "save_safetensors: metadata cannot be called \"brigade/xxh3\"; that name is kept for checksums");
}

}  // namespace brigade::test::safetensors_test
