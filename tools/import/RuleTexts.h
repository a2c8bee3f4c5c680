//===- RuleTexts.h - Loss scales and schedules as text ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_RULETEXTS_H
#define ZERO_TOOLS_IMPORT_RULETEXTS_H

#include <cstdint>
#include <string>

namespace zero {

/// The zero.loss_scale @loss_scale that stays |scale|.
std::string writeStaticLossScale(double scale);

/// DeepSpeed's rule, as examples/loss_scales/deepspeed.mlir explains it.
struct DynamicLossScale {
  int64_t power = 16; // it begins as 2 to this power
  int64_t window = 1000;
  int64_t hysteresis = 2;
  double minimum = 1;
  bool isRefilled = false; // hysteresis, by each step without overflow
};
std::string writeDynamicLossScale(const DynamicLossScale &rule);

/// A learning rate that rises for |warmup| steps and then follows |tail|.
struct WarmupSchedule {
  enum class Tail { constant, linear, cosine } tail = Tail::constant;
  bool isLogarithmic = true;
  int64_t warmup = 1000;
  int64_t total = 0; // of linear and cosine
  double low = 0;    // the rate where the warm-up begins
  double high = 0;   // the rate where it ends
  double first = 0;  // the rate of the first step
  double floor = 0;  // the rate where a cosine ends
};
/// A zero.schedule @lr.
std::string writeWarmupSchedule(const WarmupSchedule &schedule);

/// The zero.schedule @lr of min times 1 + rate * (steps before) / size.
std::string writeRangeTest(double min, double rate, int64_t size);

/// DeepSpeed's OneCycle: from |low| to |high| and back, and then the decay.
struct CycleSchedule {
  int64_t firstSteps = 2000, secondSteps = 2000;
  double low = 0, high = 0;
  double decay = 0;       // in an interval behind the cycle; 0: none
  int64_t decaySteps = 1; // of an interval
};
/// The zero.schedule @lr, which falls behind the cycle.
std::string writeCycleRate(const CycleSchedule &schedule);
/// The zero.schedule @beta1, which goes the other way and then grows.
std::string writeCycleMomentum(const CycleSchedule &schedule);

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_RULETEXTS_H
