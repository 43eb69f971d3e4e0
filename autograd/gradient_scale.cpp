// Combines scale labels, invalidates them after writes, and counts the living scalers.
#include <brigade/autograd/gradient_scale.h>

#include <brigade/autograd/write_log.h>
#include <brigade/kernels/bucket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

namespace brigade::autograd {
namespace {

std::atomic<uint64_t> scaler_numbers{0};
std::atomic<int> living_scalers{0};
std::atomic<int> living_that_only_read{0};

struct Told {
  std::array<double, 8> scales{};  // 0: none
  size_t next = 0;
};
thread_local Told told;
thread_local std::unordered_set<uint64_t> unregistered_scaled;

}  // namespace

void ScaleLabel::join(const ScaleLabel& other) noexcept {
  if (other.known == ScaleKnown::Nothing || known == ScaleKnown::Unknown) return;
  if (known == ScaleKnown::Nothing || other.known == ScaleKnown::Unknown) {
    *this = other;
    return;
  }
  if (known == ScaleKnown::Mixed) return;
  if (other.known == ScaleKnown::Mixed) {
    *this = other;
  } else if (!first.agrees_with(other.first)) {
    known = ScaleKnown::Mixed;
    second = other.first;
  } else if (first.scaler == 0) {
    first = other.first;  // both have a scale of 1: keep the one with more information
  }
}

ScaleLabel ScaleLabel::through(const ScaleMark* mark) const noexcept {
  if (!mark || known == ScaleKnown::Nothing || known == ScaleKnown::Unknown) return *this;
  if (mark->kind == ScaleMark::Kind::Vanishes) return {};
  ScaleLabel result = *this;
  if (mark->kind == ScaleMark::Kind::ByHand) {
    result.known = ScaleKnown::Unknown;
    return result;
  }
  for (ScaleOrigin* origin : {&result.first, &result.second}) {
    origin->scaler = mark->scaler;
    origin->scale *= mark->scale;
    ++origin->times;
    origin->scaled_at = mark->where;
  }
  return result;
}

void ScaleStamp::note_memory(const Tensor& gradient) {
  gradient.storage()->watch();
  version = gradient.version();
  writes = writes_so_far();
  is_finite = false;
}

void ScaleStamp::look(const Tensor& gradient) { is_finite = !kernels::has_non_finite(gradient); }

void ScaleStamp::on_backward(const ScaleLabel& added, const Tensor& gradient) {
  ScaleLabel sum = label;
  sum.join(added);
  // The previous gradient may have been zeroed, or brought to this scale, by hand. The backward itself changes the
  // version but leaves no entry in the write log.
  if (sum.known > ScaleKnown::One && sum.known != added.known) {
    const std::string_view write = written_since(gradient);
    if (write == "zero_") {
      sum = added;
    } else if (!write.empty()) {
      sum = {.known = ScaleKnown::Unknown};
    }
  }
  label = sum;
  note_memory(gradient);
}

void ScaleStamp::on_set(const Tensor& gradient) {
  label = {.known = ScaleKnown::Unknown};
  if (has_scalers()) note_memory(gradient);
}

void ScaleStamp::on_unscale(uint64_t scaler, double scale, SourceLocation where, const Tensor& gradient) {
  if (label == ScaleKnown::One) {
    label.first.scaler = scaler;
    label.first.scale = 1;
    label.first.unscaled_at = where;
    label.first.unscaled_by = scale;
  } else if (label == ScaleKnown::Mixed) {
    label = {.known = ScaleKnown::Unknown};  // the caller knows more than the label
  }
  note_memory(gradient);
}

void ScaleStamp::on_change(const Tensor& gradient) {
  if (label != ScaleKnown::Nothing) note_memory(gradient);
}

const char* ScaleStamp::written_since(const Tensor& gradient) const {
  // If another thread set the label, the difference wraps around and is large.
  if (writes_so_far() - writes > kWritesKept) return "unknown";
  const std::vector<Write> found = writes_to(gradient, writes);
  if (found.empty()) return "";
  const bool is_whole = found.back().end - found.back().begin >= static_cast<int64_t>(gradient.nbytes());
  return is_whole ? found.back().op : "a part";
}

void ScaleStamp::settle(const Tensor& gradient) {
  if (label == ScaleKnown::Nothing || label == ScaleKnown::Unknown) return;
  // A bucket is memory of many gradients: only the log shows which one was written.
  const bool moved_on = !gradient.storage()->home() && gradient.version() != version;
  if (moved_on || *written_since(gradient)) label = {.known = ScaleKnown::Unknown};
}

uint64_t begin_scaler(bool only_reads) noexcept {
  living_scalers.fetch_add(1, std::memory_order_relaxed);
  if (only_reads) living_that_only_read.fetch_add(1, std::memory_order_relaxed);
  forget_unregistered_scaled_leaves();
  return scaler_numbers.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Uses no thread-local state: a scaler may be a static object.
void end_scaler(bool only_reads) noexcept {
  living_scalers.fetch_sub(1, std::memory_order_relaxed);
  if (only_reads) living_that_only_read.fetch_sub(1, std::memory_order_relaxed);
}

bool has_scalers() noexcept { return living_scalers.load(std::memory_order_relaxed) > 0; }
bool has_scalers_that_only_read() noexcept { return living_that_only_read.load(std::memory_order_relaxed) > 0; }

namespace {
bool was_reported(double number) {
  return std::find(told.scales.begin(), told.scales.end(), number) != told.scales.end();
}
}  // namespace

void note_reported_scale(double scale) noexcept {
  if (was_reported(scale)) return;
  told.scales[told.next] = scale;
  told.next = (told.next + 1) % told.scales.size();
}

const ScaleMark* mark_of_number(double number) noexcept {
  static constexpr ScaleMark kVanishes{.kind = ScaleMark::Kind::Vanishes};
  static constexpr ScaleMark kByHand{.kind = ScaleMark::Kind::ByHand};
  if (number == 0) return &kVanishes;
  // A factor of 1 changes nothing.
  return number != 1 && was_reported(number) ? &kByHand : nullptr;
}

const std::unordered_set<uint64_t>& unregistered_leaves_with_scaled_grads() noexcept { return unregistered_scaled; }

void note_unregistered_scaled_leaf(uint64_t leaf) {
  constexpr size_t kMost = 1024;
  if (unregistered_scaled.size() < kMost) unregistered_scaled.insert(leaf);
}

void forget_unregistered_scaled_leaves() noexcept { unregistered_scaled.clear(); }

}  // namespace brigade::autograd
