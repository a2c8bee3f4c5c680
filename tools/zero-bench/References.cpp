//===- References.cpp - Loops that rows are compared with -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/References.h"

#include <cmath>
#include <cstring>
#include <immintrin.h>

static float widen(uint16_t bits) {
  uint32_t word = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

/// To nearest even; no nan comes here.
static uint16_t narrow(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  return uint16_t((word + 0x7fff + ((word >> 16) & 1)) >> 16);
}

void zero::bench::streamsOfAdamW(const uint16_t *__restrict g,
                                 float *__restrict p, float *__restrict m,
                                 float *__restrict v, uint16_t *__restrict out,
                                 int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float x = widen(g[i]);
    p[i] += x;
    m[i] += x;
    v[i] += x;
    out[i] = narrow(p[i]);
  }
}

void zero::bench::streamsOfAdamW(const float *__restrict g, float *__restrict p,
                                 float *__restrict m, float *__restrict v,
                                 uint16_t *__restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    p[i] += g[i];
    m[i] += g[i];
    v[i] += g[i];
    out[i] = narrow(p[i]);
  }
}

void zero::bench::streamsOfSum(const float *const *sources, int32_t count,
                               float *out, int64_t n) {
  constexpr int64_t width = 8;
  for (int64_t i = 0; i < n; i += 4 * width) {
    __m256 sums[4];
    for (int k = 0; k < 4; ++k)
      sums[k] = _mm256_loadu_ps(sources[0] + i + k * width);
    for (int32_t s = 1; s < count; ++s)
      for (int k = 0; k < 4; ++k)
        sums[k] =
            _mm256_add_ps(sums[k], _mm256_loadu_ps(sources[s] + i + k * width));
    for (int k = 0; k < 4; ++k)
      _mm256_stream_ps(out + i + k * width, sums[k]);
  }
  _mm_sfence();
}

uint64_t zero::bench::plainRead(const float *data, int64_t n) {
  uint64_t sums[16] = {};
  for (int64_t i = 0; i + 32 <= n; i += 32)
    for (int j = 0; j < 16; ++j) {
      uint64_t word;
      std::memcpy(&word, data + i + 2 * j, sizeof(word));
      sums[j] += word;
    }
  uint64_t sum = 0;
  for (uint64_t part : sums)
    sum += part;
  return sum;
}

void zero::bench::unscale(const uint16_t *__restrict g, float factor,
                          float *__restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = widen(g[i]) * factor;
}

double zero::bench::sumSquares(const float *g, int64_t n) {
  double sums[32] = {};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int j = 0; j < 32; ++j)
      sums[j] += double(g[i + j]) * double(g[i + j]);
  double sum = 0;
  for (double part : sums)
    sum += part;
  for (; i < n; ++i)
    sum += double(g[i]) * double(g[i]);
  return sum;
}

void zero::bench::clip(float *g, float coefficient, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    g[i] *= coefficient;
}

void zero::bench::adamW(const float *__restrict g, float *__restrict p,
                        float *__restrict m, float *__restrict v,
                        const AdamWScalars &s, int64_t n) {
  const AdamWScalars k = s;
  for (int64_t i = 0; i < n; ++i) {
    float m1 = m[i] * k.beta1 + g[i] * k.ob1;
    float v1 = v[i] * k.beta2 + g[i] * g[i] * k.ob2;
    p[i] = p[i] * k.keep + k.step * (m1 / (std::sqrt(v1) * k.invRoot + k.eps));
    m[i] = m1;
    v[i] = v1;
  }
}

void zero::bench::castToBf16(const float *__restrict p,
                             uint16_t *__restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = narrow(p[i]);
}
