//===- Gemm.h - Matrix products of both precisions --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_GEMM_H
#define ZERO_EXAMPLES_TRANSFORMER_GEMM_H

#include <cblas.h>

#include <cstdint>

namespace transformer {

/// A row-major matrix inside a larger array: |stride| elements between rows.
template <typename T> struct Matrix {
  T *data;
  int64_t stride;
  bool transposed = false;

  Matrix transpose() const { return {data, stride, !transposed}; }
};

/// c (m x n) = alpha * a (m x k) * b (k x n) + beta * c.
inline void multiply(int64_t m, int64_t n, int64_t k, float alpha,
                     Matrix<const float> a, Matrix<const float> b, float beta,
                     Matrix<float> c) {
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, m, n, k, alpha, a.data,
              a.stride, b.data, b.stride, beta, c.data, c.stride);
}

inline void multiply(int64_t m, int64_t n, int64_t k, double alpha,
                     Matrix<const double> a, Matrix<const double> b,
                     double beta, Matrix<double> c) {
  cblas_dgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, m, n, k, alpha, a.data,
              a.stride, b.data, b.stride, beta, c.data, c.stride);
}

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_GEMM_H
