//===- References.h - Loops that rows are compared with ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain loops that the C++ compiler vectorizes for the same processor.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_BENCH_REFERENCES_H
#define ZERO_TOOLS_ZERO_BENCH_REFERENCES_H

#include <cstdint>

namespace zero::bench {

/// Reads g, p, m, v, and writes p, m, v, out: the bytes of a fused AdamW and as
/// little arithmetic as uses them.
void streamsOfAdamW(const uint16_t *g, float *p, float *m, float *v,
                    uint16_t *out, int64_t n);
void streamsOfAdamW(const float *g, float *p, float *m, float *v, uint16_t *out,
                    int64_t n);
/// Writes the sums of |count| arrays of |n| floats, a multiple of 32, around
/// the cache; with one array that is a copy. |out| is aligned to 32 bytes.
void streamsOfSum(const float *const *sources, int32_t count, float *out,
                  int64_t n);
/// Reads |n| floats.
uint64_t plainRead(const float *data, int64_t n);

// One pass over memory each: what a framework runs for one update.
void unscale(const uint16_t *g, float factor, float *out, int64_t n);
double sumSquares(const float *g, int64_t n);
void clip(float *g, float coefficient, int64_t n);
struct AdamWScalars {
  float keep, step, beta1, ob1, beta2, ob2, invRoot, eps;
};
void adamW(const float *g, float *p, float *m, float *v,
           const AdamWScalars &scalars, int64_t n);
void castToBf16(const float *p, uint16_t *out, int64_t n);

} // namespace zero::bench

#endif // ZERO_TOOLS_ZERO_BENCH_REFERENCES_H
