//===- Floats.cpp - Numbers to and from arrays of an element type ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Floats.h"

#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace zero;

int64_t zero::getWidth(Type type) { return type.getIntOrFloatBitWidth() / 8; }

static APFloat encodeFloat(double value, Type type) {
  APFloat number(value);
  bool losesInfo;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 APFloat::rmNearestTiesToEven, &losesInfo);
  return number;
}

Bytes zero::pack(ArrayRef<double> values, Type type) {
  int64_t width = getWidth(type);
  Bytes bytes(values.size() * width);
  for (auto [i, value] : llvm::enumerate(values)) {
    uint64_t bits = encodeFloat(value, type).bitcastToAPInt().getZExtValue();
    std::memcpy(bytes.data() + i * width, &bits, width); // little endian
  }
  return bytes;
}

std::vector<Number> zero::unpack(const void *data, int64_t elements,
                                 Type type) {
  int64_t width = getWidth(type);
  const auto &semantics = cast<FloatType>(type).getFloatSemantics();
  std::vector<Number> numbers(elements);
  for (int64_t i = 0; i < elements; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const char *>(data) + i * width, width);
    APFloat number(semantics, APInt(width * 8, bits));
    bool losesInfo;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    numbers[i] = {number.convertToDouble(), 0.0};
  }
  return numbers;
}
