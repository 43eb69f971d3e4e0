// Prints the results of the half-type functions: for all halves, for floating-point numbers that round to them from
// both sides, and for pairs.
#pragma once

#include "describe.h"

#include <cmath>
#include <cstring>

namespace describe {

// A digest of all results (FNV-1a), and each result of a sample in readable form.
class Results {
 public:
  explicit Results(const char* name) : name_(name) {}
  ~Results() { std::printf("values of %s: %llu results, digest %016llx\n", name_, count_, digest_); }
  template <class T>
  void add(T result) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &result, sizeof(T));
    for (const unsigned char byte : bytes)
      digest_ = (digest_ ^ byte) * 0x100000001b3ull;
    if (++count_ % kStep == 1) {
      std::printf("%s, result %llu:", name_, count_);
      for (const unsigned char byte : bytes)
        std::printf(" %02x", byte);
      std::printf("\n");
    }
  }

 private:
  static constexpr unsigned long long kStep = 9973;
  const char* name_;
  unsigned long long count_ = 0;
  unsigned long long digest_ = 0xcbf29ce484222325ull;
};

template <class Half, class Pair>
struct Functions {
  Half (*from_float)(float);
  Half (*from_float_nearest)(float);
  Half (*from_double)(double);
  float (*to_float)(Half);
  unsigned short (*to_bits)(Half);
  Half (*from_bits)(unsigned short);
  Pair (*twice)(Half);
};

template <class Half, class Pair>
void half_values(const char* type, const Functions<Half, Pair>& f) {
  std::printf("%s\n", type);
  Results wide("to float"), bits("bits"), pairs("pairs"), near("from float"), nearest("from float, to nearest"),
      of_double("from double"), constructed("from float and double and int"), arithmetic("arithmetic"),
      compared("comparisons");
  for (int pattern = 0; pattern < 0x10000; ++pattern) {
    const Half half = f.from_bits(static_cast<unsigned short>(pattern));
    const float value = f.to_float(half);
    bits.add(f.to_bits(half));
    pairs.add(f.twice(half));
    if (std::isnan(value)) continue;  // NaN payloads are not compared
    wide.add(value);
    wide.add(static_cast<float>(half));
    bits.add(f.to_bits(-half));
    const float next = f.to_float(f.from_bits(static_cast<unsigned short>(pattern + 1)));
    const double middle = (static_cast<double>(value) + static_cast<double>(next)) / 2;
    for (const double x :
         {static_cast<double>(value), middle, std::nextafter(middle, -HUGE_VAL), std::nextafter(middle, HUGE_VAL)})
      of_double.add(f.to_bits(f.from_double(x)));
    const auto rounded = static_cast<float>(middle);
    for (const float x : {value, rounded, std::nextafter(rounded, -HUGE_VALF), std::nextafter(rounded, HUGE_VALF)}) {
      near.add(f.to_bits(f.from_float(x)));
      nearest.add(f.to_bits(f.from_float_nearest(x)));
    }
    constructed.add(f.to_bits(Half(rounded)));
    constructed.add(f.to_bits(Half(middle)));
    constructed.add(f.to_bits(Half(pattern)));
    const Half other = f.from_bits(static_cast<unsigned short>(pattern * 40503u >> 3));
    if (std::isnan(f.to_float(other))) continue;
    for (const Half x : {half + other, half - other, half * other, half / other}) {
      if (!std::isnan(f.to_float(x))) arithmetic.add(f.to_bits(x));
    }
    for (const bool x : {half == other, half != other, half<other, half <= other, half> other, half >= other})
      compared.add(x);
  }
  near.add(f.to_bits(f.from_float(NAN)));
  nearest.add(f.to_bits(f.from_float_nearest(-NAN)));
  of_double.add(f.to_bits(f.from_double(static_cast<double>(NAN))));
}

inline void all_half_values() {
  half_values<__half, __half2>("float16", {__float2half, __float2half_rn, __double2half, __half2float, __half_as_ushort,
                                           __ushort_as_half, __half2half2});
  half_values<__nv_bfloat16, __nv_bfloat162>(
      "bfloat16", {__float2bfloat16, __float2bfloat16_rn, __double2bfloat16, __bfloat162float, __bfloat16_as_ushort,
                   __ushort_as_bfloat16, __bfloat162bfloat162});
}

}  // namespace describe
