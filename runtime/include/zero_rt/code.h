//===- code.h - The code of a compiled step ----------------------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CODE_H
#define ZERO_RT_CODE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A fused loop over elements [begin, end) of its operands, which point to the
/// launched range. |scalars| are the per-step scalars of the segment, in
/// memory; null if the segment has none. A reducing kernel writes one f64 per
/// started block of 4096 elements to partials[element / 4096]. The |begin| of a
/// reducing kernel is a multiple of 4096.
typedef void (*zero_rt_kernel_fn)(void *const *operands, const double *scalars,
                                  int64_t begin, int64_t end, double *partials);

/// Straight-line f64 arithmetic on the scalar slots of the step.
typedef void (*zero_rt_scalar_fn)(double *slots);

/// The kernels and scalar programs of a step for one target. A device takes the
/// executables of its target whose format it knows.
typedef struct zero_rt_executable {
  uint32_t struct_size;
  uint32_t reserved;
  const char *target; // the name of a device
  const char *format; // says what |data| is; a new layout has a new name
  const void *data;
  int64_t bytes; // of |data|
} zero_rt_executable;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_CODE_H
