// Backends by name: Brigade's own, and one that a program adds.
#include <brigade/brigade.h>
#include <brigade/dist/rendezvous/store.h>

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

namespace brigade::test::backends_test {

TEST_CASE("a program adds a backend, and init_process_group makes it") {
  static int made = 0;
  static const dist::AddBackend add({"counted", "one thread, for this test",
                                     [](std::shared_ptr<dist::Store> store, int rank, int size,
                                        std::chrono::milliseconds timeout, const std::string& prefix) {
                                       ++made;
                                       CHECK(rank == 0);
                                       CHECK(size == 1);
                                       store->set(prefix + "/mine", "here");
                                       return dist::make_thread_groups(1, timeout).front();
                                     }});
  char folder[] = "/tmp/brigade_backends_XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  dist::InitOptions options;
  options.backend = "counted";
  options.init_method = std::string("file://") + folder + "/store";
  options.rank = 0;
  options.world_size = 1;
  const dist::ProcessGroupPtr group = dist::init_process_group(options);
  CHECK(made == 1);
  CHECK(group->size() == 1);
  CHECK(dist::all_backends().back().name == "counted");
  CHECK(dist::find_backend("counted").reach == "one thread, for this test");
  std::filesystem::remove_all(folder);

  const std::string known = dist::backend_names();
  options.backend = "carrier-pigeon";
  CHECK_THROWS_WITH_AS(dist::init_process_group(options),
                       doctest::Contains(("unknown backend 'carrier-pigeon'; known are " + known).c_str()), DistError);
  CHECK(known.starts_with("auto, shm, "));

  options.backend = "unbuilt";
  const dist::AddBackend unbuilt({"unbuilt", "", {}, "this build has no pigeons; install them"});
  CHECK_THROWS_WITH_AS(dist::init_process_group(options), "this build has no pigeons; install them", DistError);
  CHECK(known.ends_with(", counted"));
  CHECK_THROWS_AS(dist::AddBackend({"shm", "", {}}), ValueError);
  CHECK_THROWS_AS(dist::AddBackend({"auto", "", {}}), ValueError);
}

}  // namespace brigade::test::backends_test
