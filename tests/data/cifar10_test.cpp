#include <brigade/data/image_dataset.h>

#include <core/error_of.h>
#include <data/image_files.h>

#include <doctest/doctest.h>

namespace brigade::test::cifar10_test {
using test::error_of;
using test::TemporaryFolder;
using test::write_bytes;

namespace {

void write_training_set(const TemporaryFolder& folder, const std::string& below = "") {
  for (int i = 1; i <= 5; ++i)
    write_bytes(folder / (below + "data_batch_" + std::to_string(i) + ".bin"), test::cifar_records(2, i));
}

}  // namespace

TEST_CASE("CIFAR-10 is read from its binary files: the five of the training set in their order, or the test set") {
  const TemporaryFolder folder;
  write_training_set(folder);
  write_bytes(folder / "test_batch.bin", test::cifar_records(3, 7));
  const data::CIFAR10 train(folder.text());
  CHECK(train.size() == 10);
  CHECK(train.targets().to_vector<int>() == std::vector<int>{1, 2, 2, 3, 3, 4, 4, 5, 5, 6});
  const data::Example one = train.get(9);
  CHECK(one.data.sizes() == Shape{3, 32, 32});
  CHECK(one.target.item<int>() == 6);
  const std::vector<float> pixels = one.data.to_vector<float>();
  for (size_t p = 0; p < pixels.size(); ++p)
    REQUIRE(pixels[p] == static_cast<float>(p % 256) / 255.0F);
  CHECK(data::CIFAR10(folder.text(), data::Mode::kTest).targets().to_vector<int>() == std::vector<int>{7, 8, 9});
}

TEST_CASE("the folder may be the one above, and files may be packed") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "cifar-10-batches-bin");
  write_training_set(folder, "cifar-10-batches-bin/");
  test::write_gzip(folder / "cifar-10-batches-bin/test_batch.bin.gz", test::cifar_records(1, 4));
  CHECK(data::CIFAR10(folder.text()).size() == 10);
  CHECK(data::CIFAR10(folder.text(), data::Mode::kTest).targets().to_vector<int>() == std::vector<int>{4});
}

TEST_CASE("files of the version for Python, and an archive, are reported as such") {
  for (const char* file : {"data_batch_1", "cifar-10-batches-py", "cifar-10-python.tar.gz"}) {
    const TemporaryFolder folder;
    write_bytes(folder / file, "\x80\x02}q");
    CHECK(error_of([&] { data::CIFAR10{folder.text()}; }) ==
          "CIFAR-10: " + folder / file +
              " is of the version for Python; download the \"CIFAR-10 binary version\" (cifar-10-binary.tar.gz)");
  }
  const TemporaryFolder folder;
  write_bytes(folder / "cifar-10-binary.tar.gz", "");
  CHECK(error_of([&] {
          data::CIFAR10{folder.text()};
        }).starts_with("CIFAR-10: " + folder / "cifar-10-binary.tar.gz is an archive; unpack it (tar xf)"));
  // An archive next to its unpacked files is ignored.
  write_bytes(folder / "test_batch.bin", test::cifar_records(1, 4));
  CHECK(data::CIFAR10(folder.text(), data::Mode::kTest).size() == 1);
}

TEST_CASE("broken files of CIFAR-10 are named, with the record and what was expected") {
  const TemporaryFolder folder;
  write_training_set(folder);
  const std::string third = folder / "data_batch_3.bin";
  const std::string good = test::cifar_records(2, 0);
  const auto message = [&](const std::string& bytes) {
    write_bytes(third, bytes);
    CHECK_THROWS_AS(data::CIFAR10(folder.text()), IoError);
    return error_of([&] { data::CIFAR10{folder.text()}; });
  };
  constexpr const char* kNoRecords = " bytes, which is no whole number of records; expected a file of the binary";
  CHECK(message("").starts_with(third + " holds 0" + kNoRecords));
  CHECK(message(good.substr(0, good.size() - 1)).starts_with(third + " holds 6145" + kNoRecords));
  CHECK(message(good + "x").starts_with(third + " holds 6147" + kNoRecords));
  std::string wrong = good;
  wrong[3073] = '\x0a';
  CHECK(message(wrong).starts_with(third + ", record 1: the label is 10, expected 0..9; is it a file of the binary"));
  wrong[3073] = '\xff';
  CHECK(message(wrong).starts_with(third + ", record 1: the label is 255, expected 0..9"));
  std::filesystem::remove(third);
  CHECK(error_of([&] {
          data::CIFAR10{folder.text()};
        }).starts_with("CIFAR-10: found neither data_batch_3.bin nor data_batch_3.bin.gz in " + folder.text()));
}

}  // namespace brigade::test::cifar10_test
