//===- Precision.cpp - The type that gradients arrive in ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Precision.h"

#include "examples/transformer/Bf16.h"

#include <cstring>

namespace transformer {

bool parsePrecision(const std::string &name, Precision &out) {
  if (name == "bf16")
    out = Precision::bf16;
  else if (name == "fp16")
    out = Precision::fp16;
  else if (name == "f32")
    out = Precision::f32;
  else
    return false;
  return true;
}

const char *typeName(Precision precision) {
  switch (precision) {
  case Precision::bf16:
    return "bf16";
  case Precision::fp16:
    return "f16";
  case Precision::f32:
    break;
  }
  return "f32";
}

/// Each of |from| as |round| makes it, which |widen| makes a float again.
template <typename Round, typename Widen>
static void convert(Rounded &out, const float *from, int64_t count, Round round,
                    Widen widen) {
  using Narrow = decltype(round(0.0f));
  out.bytes.resize(size_t(count) * sizeof(Narrow));
  out.values.resize(size_t(count));
  for (int64_t i = 0; i < count; ++i) {
    Narrow narrow = round(from[i]);
    std::memcpy(&out.bytes[size_t(i) * sizeof(narrow)], &narrow,
                sizeof(narrow));
    out.values[size_t(i)] = widen(narrow);
  }
}

void Rounded::assign(Precision precision, const float *from, int64_t count) {
  switch (precision) {
  case Precision::bf16:
    return convert(*this, from, count, toBf16, fromBf16);
  case Precision::fp16:
    return convert(
        *this, from, count, [](float value) { return _Float16(value); },
        [](_Float16 value) { return float(value); });
  case Precision::f32:
    return convert(
        *this, from, count, [](float value) { return value; },
        [](float value) { return value; });
  }
}

} // namespace transformer
