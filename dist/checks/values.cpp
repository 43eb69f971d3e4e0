// Gathers hashes of tensors, then hashes of chunks, and finally the values of the first differing chunk.
#include <brigade/dist/checks/values.h>

#include <brigade/autograd/tape.h>
#include <brigade/core/fnv.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/errors/majority.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace brigade::dist {
namespace {

constexpr int64_t kChunk = 16384;  // elements; hashes narrow the search to one chunk

uint64_t hash_bytes(const char* data, size_t bytes) noexcept {
  // Four independent chains, so that multiplications overlap.
  uint64_t chains[4] = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + 32 <= bytes; at += 32) {
    for (size_t k = 0; k < 4; ++k) {
      uint64_t word = 0;
      std::memcpy(&word, data + at + 8 * k, 8);
      chains[k] = (std::rotl(chains[k], 23) ^ word) * 0x9E3779B97F4A7C15U;
    }
  }
  uint64_t hash = bytes;
  for (const uint64_t chain : chains)
    hash = mix(hash ^ chain);
  for (; at < bytes; ++at)
    hash = mix(hash ^ static_cast<unsigned char>(data[at]));
  return hash;
}

// A contiguous copy in host memory.
Tensor plain(const Tensor& tensor) { return brigade::detail::on_host(kernels::contiguous(tensor)); }

uint64_t hash_of(const Tensor& tensor) {
  if (!tensor.defined()) return 0;
  const Tensor values = plain(tensor);
  return hash_bytes(static_cast<const char*>(values.raw_data()), values.nbytes()) | 1;
}

// hashes[rank][i]
std::vector<std::vector<uint64_t>> gather(ProcessGroup& group, const std::vector<uint64_t>& mine,
                                          std::string_view about, SourceLocation where) {
  const auto count = static_cast<int64_t>(mine.size());
  const Tensor own = group.allocate(count, kInt64);
  const Tensor all = group.allocate(count * group.size(), kInt64);
  if (count > 0) std::memcpy(own.raw_data(), mine.data(), mine.size() * 8);
  group.all_gather(all, own, {.description = about}, where)->wait();
  std::vector<std::vector<uint64_t>> result;
  const auto* values = static_cast<const uint64_t*>(all.raw_data());
  for (int r = 0; r < group.size(); ++r)
    result.emplace_back(values + r * count, values + (r + 1) * count);
  return result;
}

// Distance of two floats in ulps of the dtype; -1 if undefined.
int64_t ulps(double a, double b, DType dtype) {
  if (!is_floating_point(dtype) || !std::isfinite(a) || !std::isfinite(b)) return -1;
  const int digits = dtype == kFloat64 ? 53 : dtype == kFloat32 ? 24 : dtype == kFloat16 ? 11 : 8;
  int exponent = 0;
  std::frexp(std::max(std::abs(a), std::abs(b)), &exponent);
  const double steps = std::abs(a - b) / std::ldexp(1.0, exponent - digits);
  return steps < 9e18 ? std::llround(steps) : -1;
}

// "element 5 of [8, 4]: rank 0 holds 0.25, rank 1 0.5 (3 ulp apart)"
std::string first_difference(ProcessGroup& group, const Tensor& tensor, SourceLocation where) {
  const Tensor values = plain(tensor);
  const auto size = static_cast<int64_t>(values.itemsize());
  const auto* bytes = static_cast<const char*>(values.raw_data());
  std::vector<uint64_t> hashes;
  for (int64_t begin = 0; begin < values.numel(); begin += kChunk) {
    const int64_t count = std::min(kChunk, values.numel() - begin);
    hashes.push_back(hash_bytes(bytes + begin * size, static_cast<size_t>(count * size)));
  }
  const auto by_rank = gather(group, hashes, "hashes of the parts of a tensor that differs", where);
  int64_t chunk = 0;
  while (chunk + 1 < static_cast<int64_t>(hashes.size())) {
    const auto at = static_cast<size_t>(chunk);
    if (std::any_of(by_rank.begin(), by_rank.end(), [&](const auto& each) { return each[at] != by_rank[0][at]; }))
      break;
    ++chunk;
  }
  const int64_t begin = chunk * kChunk;
  const int64_t count = std::min(kChunk, values.numel() - begin);
  const Tensor part = group.allocate(count, values.dtype());
  std::memcpy(part.raw_data(), bytes + begin * size, static_cast<size_t>(count * size));
  const Tensor parts = group.allocate(count * group.size(), values.dtype());
  group.all_gather(parts, part, {.description = "values of the part of a tensor that differs"}, where)->wait();
  const auto* gathered = static_cast<const char*>(parts.raw_data());
  for (int64_t i = 0; i < count; ++i) {
    std::vector<double> held;
    bool differs = false;
    for (int r = 0; r < group.size(); ++r) {
      held.push_back(brigade::detail::element_as_double(parts, r * count + i));
      differs = differs ||
                std::memcmp(gathered + (r * count + i) * size, gathered + i * size, static_cast<size_t>(size)) != 0;
    }
    if (!differs) continue;
    std::string text = fmt::format("first at element {} of {}:", begin + i, to_string(values.sizes()));
    int64_t distance = -1;
    for (size_t r = 0; r < held.size(); ++r) {
      text += fmt::format("{} rank {} holds {:.9g}", r > 0 ? "," : "", r, held[r]);
      distance = std::max(distance, ulps(held[r], held[0], values.dtype()));
    }
    if (distance >= 0) text += fmt::format(" ({} ulp apart)", distance);
    return text;
  }
  return "";
}

}  // namespace

void ConsistencyReport::raise_if_inconsistent() const {
  if (consistent()) return;
  throw ConsistencyError(in_words(verdicts) + legend, verdicts);
}

ConsistencyReport compare_over_ranks(ProcessGroup& group, std::span<const CheckedTensor> tensors,
                                     SourceLocation where) {
  ConsistencyReport report;
  report.legend = group.names().legend(group.size());
  if (group.size() == 1) return report;
  std::vector<uint64_t> mine;
  for (const CheckedTensor& each : tensors)
    mine.push_back(hash_of(each.tensor));
  const auto by_rank = gather(group, mine, "hashes of a consistency check", where);
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<uint64_t> hashes;
    for (const auto& each : by_rank)
      hashes.push_back(each[i]);
    const CheckedTensor& tensor = tensors[i];
    DifferentValues found{.what = tensor.kind, .name = tensor.name, .odd = odd_ranks(hashes), .others = {}};
    if (found.odd.empty()) continue;
    found.bytes = tensor.tensor.defined() ? static_cast<int64_t>(tensor.tensor.nbytes()) : 0;
    std::vector<int> defined;
    for (int r = 0; r < group.size(); ++r) {
      if (hashes[static_cast<size_t>(r)] != 0) defined.push_back(r);
      if (std::find(found.odd.begin(), found.odd.end(), r) == found.odd.end()) found.others.push_back(r);
    }
    // Find the element only for the first tensor: where the difference began is what matters.
    if (std::ssize(defined) < group.size()) {
      found.details = fmt::format("it is defined on {} only", ranks_in_words(defined));
    } else if (report.verdicts.empty()) {
      found.details = first_difference(group, tensor.tensor, where);
    }
    report.verdicts.push_back(parameters_differ(found, where));
  }
  return report;
}

ConsistencyReport verify_consistency(ProcessGroup& group, const nn::Module& module, SourceLocation where) {
  std::vector<CheckedTensor> tensors;
  for (const auto& [name, parameter] : module.named_parameters())
    tensors.push_back({"parameter", name, parameter});
  for (const auto& [name, buffer] : module.named_buffers())
    tensors.push_back({"buffer", name, buffer});
  for (const auto& [name, parameter] : module.named_parameters())
    tensors.push_back({"gradient", name, parameter.grad()});
  return compare_over_ranks(group, tensors, where);
}

}  // namespace brigade::dist
