//===- Arrivals.h - In which order gradients arrive -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERORUN_ARRIVALS_H
#define ZERO_TOOLS_ZERORUN_ARRIVALS_H

#include "tools/zero-run/Engine.h"
#include "tools/zero-run/Floats.h"

#include <random>

namespace zero {

/// One piece of a gradient. What has several uses comes as itself and zeros:
/// the sum is exact.
struct Arrival {
  int64_t backward;
  int32_t parameter;
  Bytes bytes;
  zero_rt_tensor tensor; // over them
};

/// A tensor over |bytes|.
zero_rt_tensor makeTensor(Bytes &bytes, mlir::Type type, int64_t elements);

/// What |inputs| deliver, in the order of a backward pass: the last parameter
/// first; or, as |arrivals| says, in one of this rank's own.
std::vector<Arrival> listArrivals(mlir::ArrayRef<ParameterInfo> parameters,
                                  const RankInputs &inputs, Arrivals arrivals,
                                  std::mt19937_64 &random);

} // namespace zero

#endif // ZERO_TOOLS_ZERORUN_ARRIVALS_H
