#include "rank_case.h"

#include <brigade/core/error.h>

#include <map>

namespace brigade::test {
namespace {

// Keyed by the name of doctest's case, which keeps a pointer to the key.
std::map<std::string, std::function<void()>>& table() {
  static std::map<std::string, std::function<void()>> made;
  return made;
}

void run_current() { table().at(doctest::getContextOptions()->currentTest->m_name)(); }

// Does what TEST_CASE does, for a name that is composed at run time.
void add(const std::string& name, const std::function<void()>& run, const SourceLocation& where) {
  const auto [row, added] = table().emplace(name, run);
  if (!added) throw ValueError("two cases are named '" + name + "'");
  doctest::detail::regTest(
      doctest::detail::TestCase(&run_current, where.file_name(), where.line(), doctest::detail::TestSuite()) *
      row->first.c_str());
}

void run_on_processes(const BackendCheck& check, const Sizes& sizes) {
  for (const std::string& backend : backends()) {
    if (backend == "threads") continue;
    on(backend, backend == "shm" ? sizes.shm : sizes.others, check);
    if (backend != "hosts") continue;
    for (const std::string& layout : sizes.layouts)
      on("hosts:" + layout, {static_cast<int>(layout.size())}, check);
  }
}

}  // namespace

AddRankCase::AddRankCase(const std::string& name, const BackendCheck& check, const Sizes& sizes, SourceLocation where) {
  add(
      "between processes: " + name, [check, sizes] { run_on_processes(check, sizes); }, where);
  if (!sizes.threads.empty())
    add(
        "between threads: " + name, [check, sizes] { on("threads", sizes.threads, check); }, where);
}

AddRankCase::AddRankCase(const std::string& name, const Body& body, const Sizes& sizes, SourceLocation where)
    : AddRankCase(
          name, [body](const std::string& backend, int ranks) { expect_well(backend, ranks, body); }, sizes, where) {}

}  // namespace brigade::test
