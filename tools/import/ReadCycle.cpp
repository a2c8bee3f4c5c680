//===- ReadCycle.cpp - OneCycle, of the rate and of the momentum ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Config.h"
#include "tools/import/ReadJson.h"
#include "tools/import/RuleTexts.h"

using namespace zero;
using llvm::StringRef;
using llvm::Twine;

static std::string getCyclePath(StringRef parameter) {
  return ("scheduler.params." + parameter).str();
}

/// A number of the cycle; without |otherwise| it must be there.
static double readEnd(ConfigReader &reader, StringRef parameter,
                      std::optional<double> otherwise = std::nullopt) {
  std::string path = getCyclePath(parameter);
  if (!otherwise && !reader.find(path))
    reader.fail(path, "expected a number; OneCycle has no default of it");
  double number = reader.getConstant(path, otherwise.value_or(0), 0);
  reader.decide(path, formatNumber(number));
  return number;
}

static void readCycleSteps(ConfigReader &reader, CycleSchedule &schedule) {
  std::string first = getCyclePath("cycle_first_step_size");
  std::string second = getCyclePath("cycle_second_step_size");
  std::string decay = getCyclePath("decay_step_size");
  schedule.firstSteps = reader.getCount(first, 2000, 1);
  reader.decide(first, "rises for " + Twine(schedule.firstSteps) + " steps");
  schedule.secondSteps = reader.getCount(second, schedule.firstSteps, 1);
  reader.decide(second, "falls for " + Twine(schedule.secondSteps) + " steps");
  int64_t interval = reader.getCount(decay, 0, 0);
  reader.decide(decay, interval ? "decays in intervals of " + Twine(interval) +
                                      " steps"
                                : Twine("does not decay"));
  schedule.decaySteps = interval;
}

/// The decay of |parameter|, which has no effect without intervals.
static double readDecay(ConfigReader &reader, StringRef parameter,
                        const CycleSchedule &schedule) {
  double decay = readEnd(reader, parameter, 0);
  return schedule.decaySteps > 0 ? decay : 0;
}

void zero::readOneCycle(ConfigReader &reader) {
  Recipe &recipe = reader.config.recipe;
  CycleSchedule steps;
  readCycleSteps(reader, steps);
  CycleSchedule rate = steps;
  rate.low = readEnd(reader, "cycle_min_lr");
  rate.high = readEnd(reader, "cycle_max_lr");
  rate.decay = readDecay(reader, "decay_lr_rate", steps);
  rate.decaySteps = std::max<int64_t>(1, steps.decaySteps);
  recipe.schedules["lr"] = writeCycleRate(rate);
  std::string cycles = getCyclePath("cycle_momentum");
  bool hasBetas = recipe.hyper.count("beta1");
  if (!reader.getBool(cycles).value_or(true) || !hasBetas)
    return reader.decide(cycles, hasBetas ? "betas are constant"
                                          : "the optimizer has no betas");
  CycleSchedule momentum = steps;
  momentum.low = readEnd(reader, "cycle_min_mom", 0.8);
  momentum.high = readEnd(reader, "cycle_max_mom", 0.9);
  momentum.decay = readDecay(reader, "decay_mom_rate", steps);
  momentum.decaySteps = rate.decaySteps;
  if (momentum.low >= 1 || momentum.high >= 1)
    return reader.fail(getCyclePath("cycle_max_mom"),
                       "expected numbers below 1 for it and cycle_min_mom");
  recipe.schedules["beta1"] = writeCycleMomentum(momentum);
  HyperValue &beta1 = recipe.hyper["beta1"];
  beta1 = {};
  beta1.schedule = "beta1";
  // What DeepSpeed writes there.
  recipe.hyper["beta2"] = {};
  recipe.hyper["beta2"].number = 0.99;
  reader.decide("optimizer.params.betas",
                "not used: scheduler.params.cycle_momentum decides");
  reader.decide(cycles, "beta1 is the zero.schedule @beta1, and beta2 is 0.99");
}
