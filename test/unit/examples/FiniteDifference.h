//===- FiniteDifference.h - Gradients by central differences ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_EXAMPLES_FINITEDIFFERENCE_H
#define ZERO_TEST_UNIT_EXAMPLES_FINITEDIFFERENCE_H

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace transformer {

/// Normal values, the same in every run.
inline std::vector<double> randomValues(size_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double &value : values)
    value = normal(generator);
  return values;
}

inline double dot(const std::vector<double> &a, const std::vector<double> &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

/// Expects |gradient| to be the derivative of |function| by |at|, which the
/// function reads. With a step of 1e-5 the formula's error is about 1e-10 and
/// the rounding's 1e-11, far below what a wrong term makes.
inline void expectGradient(const std::string &what,
                           const std::function<double()> &function,
                           std::vector<double> &at,
                           const std::vector<double> &gradient,
                           size_t stride = 1) {
  ASSERT_EQ(at.size(), gradient.size()) << what;
  const double step = 1e-5;
  for (size_t i = 0; i < at.size(); i += stride) {
    double before = at[i];
    at[i] = before + step;
    double above = function();
    at[i] = before - step;
    double below = function();
    at[i] = before;
    double expected = (above - below) / (2 * step);
    ASSERT_NEAR(gradient[i], expected, 1e-7 * (1 + std::fabs(expected)))
        << what << "[" << i << "]";
  }
}

} // namespace transformer

#endif // ZERO_TEST_UNIT_EXAMPLES_FINITEDIFFERENCE_H
