// Joins the entries of nested braces into one row-major list.
#include <brigade/core/nested_list.h>

#include <algorithm>

namespace brigade {

NestedList::NestedList(std::initializer_list<NestedList> entries) {
  sizes_.push_back(static_cast<int64_t>(entries.size()));
  if (entries.size() == 0) return;
  const Shape& inner = entries.begin()->sizes_;
  for (int64_t size : inner)
    sizes_.push_back(size);
  kind_ = Kind::Bool;
  int64_t position = 0;
  for (const NestedList& entry : entries) {
    if (entry.sizes_ != inner) {
      throw ShapeError("tensor: entry {} of a list has shape {}, expected that of the first, {}", position,
                       entry.sizes_, inner);
    }
    kind_ = std::max(kind_, entry.kind_);
    numbers_.insert(numbers_.end(), entry.numbers_.begin(), entry.numbers_.end());
    ++position;
  }
}

DType NestedList::dtype() const noexcept {
  switch (kind_) {
    case Kind::Bool: return DType::Bool;
    case Kind::Integer: return DType::Int64;
    case Kind::Floating: break;
  }
  return DType::Float32;
}

}  // namespace brigade
