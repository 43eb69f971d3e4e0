// Atomic operations on any type of 2, 4, or 8 bytes. Relaxed, as on the device; atomic across the workers of a grid.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace simt::detail {

// Replaces *address by change(*address) and returns the previous value.
template <class T, class Change>
T atomic_update(T* address, Change change) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  Bits* const bits = reinterpret_cast<Bits*>(address);
  Bits found = __atomic_load_n(bits, __ATOMIC_RELAXED);
  for (;;) {
    T before;
    std::memcpy(static_cast<void*>(&before), &found, sizeof(T));
    const T after = change(before);
    Bits wanted;
    std::memcpy(&wanted, static_cast<const void*>(&after), sizeof(T));
    if (__atomic_compare_exchange_n(bits, &found, wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return before;
  }
}

}  // namespace simt::detail

// The type of the value is deduced from the address, so that atomicAdd(&count, 1) works on an unsigned count.
template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return simt::detail::atomic_update(address, [=](T before) { return static_cast<T>(before + value); });
}
template <class T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  return simt::detail::atomic_update(address, [=](T before) { return static_cast<T>(before - value); });
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return simt::detail::atomic_update(address, [=](T before) { return before < value ? value : before; });
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return simt::detail::atomic_update(address, [=](T before) { return value < before ? value : before; });
}
template <class T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return simt::detail::atomic_update(address, [=](T before) { return static_cast<T>(before & value); });
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return simt::detail::atomic_update(address, [=](T before) { return static_cast<T>(before | value); });
}
template <class T>
T atomicXor(T* address, std::type_identity_t<T> value) {
  return simt::detail::atomic_update(address, [=](T before) { return static_cast<T>(before ^ value); });
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return simt::detail::atomic_update(address, [=](T) { return value; });
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return simt::detail::atomic_update(address, [=](T before) { return before == expected ? value : before; });
}
// Counts up to `limit`, then wraps to 0.
inline unsigned atomicInc(unsigned* address, unsigned limit) {
  return simt::detail::atomic_update(address, [=](unsigned before) { return before >= limit ? 0 : before + 1; });
}
// Counts down to 0, then wraps to `limit`.
inline unsigned atomicDec(unsigned* address, unsigned limit) {
  return simt::detail::atomic_update(
      address, [=](unsigned before) { return before == 0 || before > limit ? limit : before - 1; });
}
