//===- nonfinite.h - Which gradient was not finite --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The statistics of a step say that some gradient is not finite. To know which
// one, the runtime checks every gradient (zero_rt_options.find_nonfinite).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_NONFINITE_H
#define ZERO_RT_CORE_NONFINITE_H

#include "zero_rt/library.h"

#include <cstddef>
#include <vector>

namespace zero_rt {

/// |backward| counts from 1.
struct NonfiniteGradient {
  int32_t parameter;
  int32_t backward;
};

/// Parameters with a gradient that is not finite since the last apply.
class NonfiniteGradients {
public:
  /// Checks |elements| numbers of |dtype| at |data|.
  void look(NonfiniteGradient gradient, const void *data, int64_t elements,
            int64_t dtype);
  void reset() { found.clear(); }
  const std::vector<NonfiniteGradient> &all() const { return found; }

private:
  std::vector<NonfiniteGradient> found; // the first of each parameter
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_NONFINITE_H
