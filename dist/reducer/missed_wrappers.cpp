// A list by wrapper, in words.
#include <brigade/dist/reducer/missed_wrappers.h>

#include <brigade/dist/diagnosis/mismatch.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

MissedWrappers& MissedWrappers::of_this_thread() {
  thread_local MissedWrappers one;
  return one;
}

void MissedWrappers::add(Missed missed) {
  erase(missed.wrapper);
  all_.push_back(std::move(missed));
}

void MissedWrappers::erase(const void* wrapper) noexcept {
  std::erase_if(all_, [wrapper](const Missed& each) { return each.wrapper == wrapper; });
}

void MissedWrappers::end(const void* wrapper) noexcept {
  forget(wrapper);
  std::erase_if(lines_, [wrapper](const auto& each) { return each.first == wrapper; });
}

void MissedWrappers::add_forward(const void* wrapper, const ProcessGroup& group, const std::string& title,
                                 SourceLocation where, SourceLocation opened) {
  constexpr size_t kMostLines = 256;
  const std::pair<const void*, Place> line(wrapper, where);
  const bool is_first = lines_.size() < kMostLines && std::ranges::find(lines_, line) == lines_.end();
  if (!is_first) return forget(wrapper);
  lines_.push_back(line);
  add({wrapper, &group, missed_forward_in_words(title, where, opened)});
}

void MissedWrappers::add_backward(const void* wrapper, const ProcessGroup& group, const std::string& title,
                                  SourceLocation where) {
  add({wrapper, &group, missed_backward_in_words(title, where)});
}

const std::string& MissedWrappers::in_backward(uint64_t number, const std::string& title, SourceLocation forward) {
  in_backward_ = backward_ == number && !in_backward_.empty() ? in_backward_ + "; " : "a backward ";
  in_backward_ += backward_in_words(title, forward);
  backward_ = number;
  return in_backward_;
}

std::string MissedWrappers::add_to(std::string activity, const ProcessGroup& group) const {
  constexpr size_t kMost = 2;  // there is little space
  size_t told = 0;
  for (auto each = all_.rbegin(); each != all_.rend() && told < kMost; ++each) {
    if (each->group != &group) continue;
    activity += each->words;
    ++told;
  }
  return activity;
}

}  // namespace brigade::dist
