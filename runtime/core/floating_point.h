//===- floating_point.h - The mode that results are defined in --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_FLOATING_POINT_H
#define ZERO_RT_CORE_FLOATING_POINT_H

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace zero_rt {

/// During the lifetime of this object, its thread rounds to nearest, keeps
/// subnormal numbers, and no operation traps. The destructor restores the mode
/// of the thread, flags included. The reason: a caller may have another mode
/// (-ffast-math sets flush-to-zero), and ranks with different modes would have
/// different bits.
class FloatingPointMode {
public:
  FloatingPointMode() {
#if defined(__x86_64__)
    callers = _mm_getcsr();
    _mm_setcsr(standard);
#endif
  }
  ~FloatingPointMode() {
#if defined(__x86_64__)
    _mm_setcsr(callers);
#endif
  }
  FloatingPointMode(const FloatingPointMode &) = delete;
  FloatingPointMode &operator=(const FloatingPointMode &) = delete;

  /// MXCSR after a reset of the processor.
  static constexpr unsigned standard = 0x1f80;

private:
  [[maybe_unused]] unsigned callers = standard;
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_FLOATING_POINT_H
