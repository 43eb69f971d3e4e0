// Checks dtypes, devices, layouts and counts of bucket kernels; sorts the slots to find overlaps.
#include <brigade/kernels/bucket.h>

#include <brigade/kernels/common/bucket.h>

#include <algorithm>
#include <string>
#include <vector>

namespace brigade::kernels {
namespace {

void check_floating(const char* what, const std::string& role, const Tensor& tensor) {
  if (!is_floating_point(tensor.dtype()))
    throw DTypeError("{}: {} must be floating, got {}", what, role, describe(tensor));
}

void check_placed(const char* what, const std::string& role, const Tensor& tensor, Device device) {
  if (tensor.device() != device)
    throw DeviceError("{}: {} must be on {}, got {}", what, role, device, describe(tensor));
  if (!tensor.is_contiguous())
    throw ShapeError("{}: {} must be contiguous, got {} with strides {}", what, role, describe(tensor),
                     tensor.strides());
}

void check_flat(const char* what, const Tensor& flat) {
  if (flat.dim() != 1) throw ShapeError("{}: flat must be 1-d, got {}", what, describe(flat));
  check_floating(what, "flat", flat);
  check_placed(what, "flat", flat, flat.device());
}

struct Slot {
  size_t index;
  int64_t begin, end;
};

// The slots of a bucket are usually sorted, so the sort is skipped.
void check_slots(const char* what, const Tensor& flat, std::vector<Slot>& slots) {
  const auto before = [](const Slot& a, const Slot& b) { return a.begin < b.begin; };
  if (!std::is_sorted(slots.begin(), slots.end(), before)) std::sort(slots.begin(), slots.end(), before);
  const Slot* last = nullptr;
  for (const Slot& slot : slots) {
    const auto text = [&](const Slot& s) {
      return "slot " + std::to_string(s.index) + " [" + std::to_string(s.begin) + ", " + std::to_string(s.end) + ")";
    };
    if (slot.begin < 0 || slot.end > flat.numel())
      throw ShapeError("{}: {} does not fit into flat {}", what, text(slot), describe(flat));
    if (last && slot.begin < last->end) throw ShapeError("{}: {} and {} overlap", what, text(*last), text(slot));
    last = &slot;
  }
}

void check_counts(const char* what, const char* role, size_t found, size_t expected) {
  if (found != expected)
    throw ShapeError("{}: expected one {} per slot, got {} for {} slots", what, role, found, expected);
}

void check_sums(const char* what, const Tensor& sums, Device device) {
  if (sums.dtype() != kFloat64) throw DTypeError("{}: sums must be float64, got {}", what, describe(sums));
  check_placed(what, "sums", sums, device);
}

}  // namespace

DType check_bucket(const char* what, const Tensor& flat, const Tensor& flags, std::span<const Tensor> tensors,
                   std::span<const int64_t> offsets) {
  check_flat(what, flat);
  check_counts(what, "offset", offsets.size(), tensors.size());
  const Tensor* first = nullptr;
  std::vector<Slot> slots;
  slots.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (!tensor.defined()) continue;
    if (!is_floating_point(tensor.dtype()) || tensor.device() != flat.device() || !tensor.is_contiguous()) {
      const std::string role = "tensor " + std::to_string(i);
      check_floating(what, role, tensor);
      check_placed(what, role, tensor, flat.device());
    }
    if (first && tensor.dtype() != first->dtype()) {
      throw DTypeError("{}: expected tensors of one dtype, got {} and {}", what, describe(*first), describe(tensor));
    }
    if (!first) first = &tensor;
    if (tensor.numel() > 0) slots.push_back({i, offsets[i], offsets[i] + tensor.numel()});
  }
  check_slots(what, flat, slots);
  if (flags.defined()) {
    check_counts(what, "flag", static_cast<size_t>(flags.numel()), tensors.size());
    check_placed(what, "flags", flags, flat.device());
    if (flags.dtype() != flat.dtype())
      throw DTypeError("{}: flags must have the dtype of flat {}, got {}", what, describe(flat), describe(flags));
  }
  return first ? first->dtype() : flat.dtype();
}

void check_bucket_sums(const Tensor& flat, std::span<const int64_t> offsets, std::span<const int64_t> numels,
                       const Tensor& sums) {
  const char* what = "bucket_sums_of_squares";
  check_flat(what, flat);
  check_counts(what, "number of elements", numels.size(), offsets.size());
  std::vector<Slot> slots;
  slots.reserve(offsets.size());
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (numels[i] < 0) throw ShapeError("{}: slot {} has a negative size", what, i);
    if (numels[i] > 0) slots.push_back({i, offsets[i], offsets[i] + numels[i]});
  }
  check_slots(what, flat, slots);
  check_counts(what, "sum", static_cast<size_t>(sums.numel()), offsets.size());
  check_sums(what, sums, flat.device());
}

void check_bucket_words(const Tensor& words, const Tensor& sums) {
  const char* what = "bucket_words";
  check_floating(what, "words", words);
  check_placed(what, "words", words, words.device());
  if (words.numel() != 4) throw ShapeError("{}: expected 4 words, got {}", what, describe(words));
  check_sums(what, sums, words.device());
}

void check_bucket_probe(const Tensor& x, const Tensor& out) {
  const char* what = "bucket_probe";
  check_floating(what, "x", x);
  check_placed(what, "x", x, x.device());
  if (out.dtype() != kFloat64 || out.numel() != 1)
    throw ShapeError("{}: out must be one float64, got {}", what, describe(out));
  check_placed(what, "out", out, x.device());
}

}  // namespace brigade::kernels
