#include <brigade/lab/data_path.h>

#include <core/error_of.h>
#include <core/temporary_folder.h>

#include <doctest/doctest.h>

#include <zlib.h>

namespace brigade::test::digits_file_test {

TEST_CASE("a file that unpacks to far more than the digits is refused before it fills the memory") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "bomb.csv.gz";
  const gzFile file = gzopen(path.c_str(), "wb9");
  REQUIRE(file);
  const std::string zeros(1 << 20, '0');
  for (int i = 0; i < 80; ++i)
    gzwrite(file, zeros.data(), static_cast<unsigned>(zeros.size()));
  gzclose(file);
  CHECK(std::filesystem::file_size(path) < 200'000);
  CHECK_THROWS_AS(lab::read_digits_file(path), IoError);
  CHECK(
      test::error_of([&] { lab::read_digits_file(path); }) ==
      path +
          " unpacks to more than 64 MiB; expected digits.csv.gz, a gzip-compressed CSV file of 0.3 MiB when unpacked");
}

}  // namespace brigade::test::digits_file_test
