//===- Reference.cpp - AdamW in f64, beside the compiled step -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Reference.h"

#include <algorithm>
#include <cmath>

namespace transformer {

Reference::Reference(std::vector<Parameter> parameters,
                     const std::vector<std::vector<float>> &initial, int copies)
    : parameters(std::move(parameters)), sums(copies) {
  for (const std::vector<float> &values : initial) {
    std::vector<double> zeros(values.size());
    state.push_back({{values.begin(), values.end()}, zeros, zeros});
    for (auto &sum : sums)
      sum.push_back(zeros);
  }
}

void Reference::addGradient(int64_t copy, int32_t parameter,
                            const std::vector<float> &gradient, double scale) {
  // Of a power of two the quotient is exact.
  std::vector<double> &sum = sums[copy][parameter];
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] += double(gradient[i]) / scale;
}

void Reference::drop() {
  for (auto &sum : sums)
    for (auto &values : sum)
      std::fill(values.begin(), values.end(), 0.0);
}

void Reference::restore(int32_t parameter, const std::string &role,
                        int64_t begin, const std::vector<float> &values) {
  State &s = state[size_t(parameter)];
  std::vector<double> &to = role == "m"   ? s.first
                            : role == "v" ? s.second
                                          : s.value;
  std::lock_guard<std::mutex> lock(restoring);
  std::copy(values.begin(), values.end(), to.begin() + begin);
}

void Reference::restoreCounter(const std::string &role, double value) {
  auto endsWith = [&](const std::string &name) {
    return role.size() >= name.size() &&
           !role.compare(role.size() - name.size(), name.size(), name);
  };
  std::lock_guard<std::mutex> lock(restoring);
  if (endsWith("beta1_t"))
    beta1Power = value;
  if (endsWith("beta2_t"))
    beta2Power = value;
}

void Reference::setSteps(int64_t number) {
  std::lock_guard<std::mutex> lock(restoring);
  steps = number;
}

double Reference::update(double learningRate) {
  double squares = 0;
  for (size_t p = 0; p < state.size(); ++p) {
    std::vector<double> &mean = sums[0][p];
    for (size_t i = 0; i < mean.size(); ++i) {
      for (size_t copy = 1; copy < sums.size(); ++copy)
        mean[i] += sums[copy][p][i];
      mean[i] /= double(sums.size());
      squares += mean[i] * mean[i];
    }
  }
  double norm = std::sqrt(squares);
  double clip = norm > constants.maxNorm ? constants.maxNorm / norm : 1.0;
  beta1Power *= constants.beta1;
  beta2Power *= constants.beta2;
  ++steps;

  double largest = 0;
  for (size_t p = 0; p < state.size(); ++p) {
    State &s = state[p];
    double decay = parameters[p].decay ? constants.decay : 0.0;
    for (size_t i = 0; i < s.value.size(); ++i) {
      double gradient = clip * sums[0][p][i];
      s.first[i] =
          constants.beta1 * s.first[i] + (1 - constants.beta1) * gradient;
      s.second[i] = constants.beta2 * s.second[i] +
                    (1 - constants.beta2) * gradient * gradient;
      double first = s.first[i] / (1 - beta1Power);
      double second = s.second[i] / (1 - beta2Power);
      s.value[i] -= learningRate * decay * s.value[i];
      s.value[i] -=
          learningRate * first / (std::sqrt(second) + constants.epsilon);
      largest = std::max(largest, std::fabs(s.value[i]));
    }
  }
  drop();

  // The step computes in f32, with u = 2^-24 per operation or constant:
  //   p <- p * keep + q * rate   3u |p|: keep, product, sum
  //   q = m / (sqrt(v) + eps)    |q| <= 7.3 by Cauchy-Schwarz for these betas
  //     m: 3u for each step that its memory of 10 reaches back, about 32u
  //     v: 3u for each step since the first (memory 1000), halved by sqrt
  //     gradient, clip, quotient, rate: some 32u; sums of 16 values of few
  //     bits are nearly always exact in 24
  // Every step adds its own error and carries the older ones on.
  const double unit = std::ldexp(1.0, -24);
  bound +=
      unit * (3 * largest + learningRate * 7.3 * (64.0 + 1.5 * double(steps)));
  return norm;
}

double Reference::difference(const std::vector<const float *> &actual) const {
  double largest = 0;
  for (size_t p = 0; p < state.size(); ++p)
    for (size_t i = 0; i < state[p].value.size(); ++i) {
      double apart = std::fabs(state[p].value[i] - double(actual[p][i]));
      // A NaN compares with nothing; it must not pass.
      if (!(apart <= largest))
        largest = apart == apart ? apart : HUGE_VAL;
    }
  return largest;
}

} // namespace transformer
