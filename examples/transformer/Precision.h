//===- Precision.h - The type that gradients arrive in ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_PRECISION_H
#define ZERO_EXAMPLES_TRANSFORMER_PRECISION_H

#include <cstdint>
#include <string>
#include <vector>

namespace transformer {

enum class Precision { bf16, fp16, f32 };

/// "bf16", "fp16" or "f32"; false for anything else.
bool parsePrecision(const std::string &name, Precision &out);

/// What MLIR calls it.
const char *typeName(Precision precision);

/// What f16 needs: a number of its range is too small for most gradients.
inline bool hasLossScale(Precision precision) {
  return precision == Precision::fp16;
}

/// |values|, rounded to nearest, as the bytes of a tensor and as floats.
struct Rounded {
  std::vector<uint8_t> bytes;
  std::vector<float> values;

  void assign(Precision precision, const float *from, int64_t count);
};

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_PRECISION_H
