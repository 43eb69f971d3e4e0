// The backend registry.
#include <brigade/dist/groups/backends.h>

#include <brigade/dist/groups/chain.h>
#include <brigade/dist/groups/shm/control.h>
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/dist/rendezvous/store.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {
namespace {

using Milliseconds = std::chrono::milliseconds;
using StorePtr = std::shared_ptr<Store>;

#ifdef BRIGADE_HAVE_GLOO
constexpr const char* kNoGloo = "";
#else
constexpr const char* kNoGloo =
    "this build of Brigade has no Gloo; install it (libgloo-dev) and configure again, or use the shm backend on one "
    "host";
#endif

#ifdef BRIGADE_HAVE_CUDA
constexpr const char* kNoCuda = "";
#else
constexpr const char* kNoCuda =
    "this build of Brigade has no CUDA, without which there is nothing for NCCL to do; build it with the preset cuda, "
    "or use shm or gloo";
#endif

ProcessGroupPtr make_nccl(StorePtr store, int rank, int size, Milliseconds timeout, const std::string& prefix) {
  const HostLayout layout = exchange_hosts(*store, rank, size, timeout, prefix);
  const Backend& control = find_backend(fastest_backend(layout, size));
  if (!control.missing.empty()) throw DistError(control.missing);
  return make_nccl_group(control.make(std::move(store), rank, size, timeout, prefix));
}

// The built-in backends are listed here because the linker would drop registrar objects in unreferenced files.
std::vector<Backend>& registry() {
  static std::vector<Backend> backends{
      {"shm", "processes of one host",
       [](StorePtr store, int rank, int size, Milliseconds timeout, const std::string& prefix) {
         return make_shm_group(std::move(store), rank, size, timeout, prefix);
       }},
      {"gloo", "processes of any hosts",
       [](StorePtr store, int rank, int size, Milliseconds timeout, const std::string& prefix) {
         return make_gloo_group(std::move(store), rank, size, timeout, prefix);
       },
       kNoGloo},
      {"hosts", "shm inside each host, gloo between them",
       [](StorePtr store, int rank, int size, Milliseconds timeout, const std::string& prefix) {
         return make_hosts_group(std::move(store), rank, size, timeout, prefix);
       },
       kNoGloo},
      {"nccl", "processes of any hosts with a GPU each", &make_nccl, kNoCuda},
  };
  return backends;
}

auto find(const std::string& name) {
  return std::find_if(registry().begin(), registry().end(), [&](const Backend& each) { return each.name == name; });
}

}  // namespace

#ifndef BRIGADE_HAVE_GLOO
ProcessGroupPtr make_gloo_group(std::shared_ptr<Store>, int, int, Milliseconds, const std::string&, const RankNames&) {
  throw DistError(std::string(kNoGloo));
}
std::shared_ptr<ChainGroup> make_gloo_chain(std::shared_ptr<Store>, int, int, Milliseconds, const std::string&,
                                            const RankNames&) {
  throw DistError(std::string(kNoGloo));
}
#endif

AddBackend::AddBackend(Backend backend) {
  if (backend.name == "auto" || backend.name == "threads" || find(backend.name) != registry().end())
    throw ValueError("AddBackend: there is a backend '{}' already; choose another name", backend.name);
  registry().push_back(std::move(backend));
}

const std::vector<Backend>& all_backends() { return registry(); }

std::string backend_names() {
  std::string names = "auto";
  for (const Backend& backend : registry())
    names += ", " + backend.name;
  return names;
}

const char* fastest_backend(const HostLayout& layout, int size) {
  const size_t most = layout.most_ranks();
  if (most > static_cast<size_t>(shm::kMaxRanks)) return "gloo";
  if (most == static_cast<size_t>(size)) return "shm";
  return most > 1 ? "hosts" : "gloo";
}

const Backend& find_backend(const std::string& name) {
  const auto found = find(name);
  if (found != registry().end()) return *found;
  throw DistError("unknown backend '{}'; known are {} (and threads, through run_threads)", name, backend_names());
}

}  // namespace brigade::dist
