//===- ScheduleTexts.cpp - DeepSpeed's schedules as text ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// DeepSpeed sets the rate of step i + 2 after step i + 1, with i from 0 on. So
// the first step has the initial rate, and the second one that of i = 0.
//
//===----------------------------------------------------------------------===//

#include "tools/import/RuleTexts.h"
#include "tools/recipe/Recipe.h"

#include "llvm/ADT/Twine.h"

#include <cmath>

using namespace zero;
using llvm::Twine;

namespace {
/// The body of a schedule, line by line.
class ScheduleText {
public:
  /// |name| is that of the schedule and of its value.
  explicit ScheduleText(const std::string &name = "lr") : name(name) {
    text = "zero.schedule @" + name +
           " counters [step = 1.0] value {\n^value(%step: f64):\n";
    constant("zero", 0);
    constant("one", 1);
  }

  void comment(const Twine &what) { text += ("  // " + what + "\n").str(); }
  void constant(const Twine &name, double value) {
    text += ("  %" + name + " = arith.constant ").str() + formatReal(value) +
            " : f64\n";
  }
  void set(const Twine &name, const Twine &op) {
    text += ("  %" + name + " = " + op + " : f64\n").str();
  }
  std::string finish() {
    return text + "  zero.yield %" + name +
           " : f64\n"
           "} next {\n"
           "^next(%skipped: i1, %step: f64):\n"
           "  %one = arith.constant 1.0 : f64\n"
           "  %more = arith.addf %step, %one : f64\n"
           "  %next = arith.select %skipped, %step, %more : f64\n"
           "  zero.yield %next : f64\n}\n";
  }

private:
  std::string name;
  std::string text;
};
} // namespace

/// %ramp = ln(i + 1) / ln(warmup), with the logarithm by its series: that of a
/// library has other bits on another machine.
static void writeLogarithm(ScheduleText &text, int64_t warmup) {
  text.comment("i + 1 = 2^e m, with m from 1/sqrt(2) to sqrt(2).");
  text.set("count", "arith.addf %i, %one");
  text.set("m0", "arith.maximumf %count, %one");
  text.set("e0", "arith.addf %zero, %zero");
  int number = 0;
  auto halve = [&](double limit, double power) {
    std::string now = std::to_string(number);
    std::string next = std::to_string(number + 1);
    text.constant("limit" + now, limit);
    text.constant("power" + now, power);
    text.constant("share" + now, std::ldexp(1.0, -static_cast<int>(power)));
    std::string is = "is" + now;
    text.set(is, "arith.cmpf oge, %m" + now + ", %limit" + now);
    text.set("less" + now, "arith.mulf %m" + now + ", %share" + now);
    text.set("more" + now, "arith.addf %e" + now + ", %power" + now);
    text.set("m" + next,
             "arith.select %" + is + ", %less" + now + ", %m" + now);
    text.set("e" + next,
             "arith.select %" + is + ", %more" + now + ", %e" + now);
    ++number;
  };
  for (double power : {32, 16, 8, 4, 2, 1})
    halve(std::ldexp(1.0, static_cast<int>(power)), power);
  halve(std::sqrt(2.0), 1);
  std::string last = std::to_string(number);
  text.comment("ln m = 2 (z + z^3/3 + z^5/5 + ...), with z = (m - 1)/(m + 1).");
  text.set("below", "arith.subf %m" + last + ", %one");
  text.set("above", "arith.addf %m" + last + ", %one");
  text.set("z", "arith.divf %below, %above");
  text.set("square", "arith.mulf %z, %z");
  constexpr int kTerms = 11; // to 1e-17, as z is at most 0.172
  text.constant("l" + Twine(kTerms), 2.0 / (2 * kTerms + 1));
  for (int k = kTerms - 1; k >= 0; --k) {
    text.constant("k" + Twine(k), 2.0 / (2 * k + 1));
    text.set("l" + Twine(k),
             "math.fma %l" + Twine(k + 1) + ", %square, %k" + Twine(k));
  }
  text.constant("ln2", std::log(2.0));
  text.set("lnm", "arith.mulf %z, %l0");
  text.set("logarithm", "math.fma %e" + last + ", %ln2, %lnm");
  text.comment("1 / ln(warmup)");
  text.constant("inverse", 1.0 / std::log(static_cast<double>(warmup)));
  text.set("ramp", "arith.mulf %inverse, %logarithm");
}

/// %wave = (1 + cos(pi x)) / 2, as examples/schedules/cosine.mlir.
static void writeWave(ScheduleText &text) {
  text.comment("cos(pi x) is the sine of y = pi (1/2 - x), by its series.");
  text.constant("half", 0.5);
  text.constant("pi", 3.14159265358979312);
  text.set("middle", "arith.subf %half, %x");
  text.set("y", "arith.mulf %pi, %middle");
  text.set("y2", "arith.mulf %y, %y");
  constexpr int kTerms = 10;
  double factor = 1;
  std::vector<double> factors{1};
  for (int k = 1; k <= kTerms; ++k)
    factors.push_back(factor /= -static_cast<double>(2 * k * (2 * k + 1)));
  text.constant("s" + Twine(kTerms), factors[kTerms]);
  for (int k = kTerms - 1; k >= 0; --k) {
    text.constant("c" + Twine(k), factors[k]);
    text.set("s" + Twine(k),
             "math.fma %s" + Twine(k + 1) + ", %y2, %c" + Twine(k));
  }
  text.set("cosine", "arith.mulf %s0, %y");
  text.set("raised", "arith.addf %one, %cosine");
  text.set("wave", "arith.mulf %raised, %half");
}

/// %after, the rate from step i = warmup on.
static void writeTail(ScheduleText &text, const WarmupSchedule &schedule) {
  using Tail = WarmupSchedule::Tail;
  if (schedule.tail == Tail::constant)
    return text.set("after", "arith.addf %high, %zero");
  text.constant("length",
                std::max<int64_t>(1, schedule.total - schedule.warmup));
  if (schedule.tail == Tail::linear) {
    text.constant("total", schedule.total);
    text.set("left", "arith.subf %total, %i");
    text.set("part", "arith.divf %left, %length");
    text.set("share", "arith.maximumf %part, %zero");
    return text.set("after", "math.fma %range, %share, %low");
  }
  text.set("behind", "arith.subf %count1, %warmup");
  text.set("part", "arith.divf %behind, %length");
  text.set("begun", "arith.maximumf %part, %zero");
  text.set("x", "arith.minimumf %begun, %one");
  writeWave(text);
  text.constant("floor", schedule.floor);
  text.set("fall", "arith.subf %high, %floor");
  text.set("after", "math.fma %fall, %wave, %floor");
}

std::string zero::writeWarmupSchedule(const WarmupSchedule &schedule) {
  ScheduleText text;
  text.constant("two", 2);
  text.constant("warmup", schedule.warmup);
  text.constant("low", schedule.low);
  text.constant("high", schedule.high);
  text.constant("first", schedule.first);
  text.comment("The first step has i = -1 and the initial rate.");
  text.set("i", "arith.subf %step, %two");
  text.set("count1", "arith.subf %step, %one");
  text.set("range", "arith.subf %high, %low");
  if (schedule.isLogarithmic)
    writeLogarithm(text, schedule.warmup);
  else
    text.set("ramp", "arith.divf %i, %warmup");
  text.set("before", "math.fma %range, %ramp, %low");
  writeTail(text, schedule);
  text.set("isWarm", "arith.cmpf oge, %i, %warmup");
  text.set("isFirst", "arith.cmpf olt, %i, %zero");
  text.set("rate", "arith.select %isWarm, %after, %before");
  text.set("lr", "arith.select %isFirst, %first, %rate");
  return text.finish();
}

std::string zero::writeRangeTest(double min, double rate, int64_t size) {
  ScheduleText text;
  text.constant("min", min);
  text.constant("growth", rate);
  text.constant("size", size);
  text.set("count1", "arith.subf %step, %one");
  text.set("intervals", "arith.divf %count1, %size");
  text.set("factor", "math.fma %growth, %intervals, %one");
  text.set("lr", "arith.mulf %min, %factor");
  return text.finish();
}

/// Writes %scale, which rises from 0 to 1 and falls back, and %after, the
/// number of intervals behind the cycle. %count1 is the number of steps before.
static void writeCycle(ScheduleText &text, const CycleSchedule &schedule) {
  text.constant("first", schedule.firstSteps);
  text.constant("second", schedule.secondSteps);
  text.constant("total", schedule.firstSteps + schedule.secondSteps);
  text.set("count1", "arith.subf %step, %one");
  text.set("rise", "arith.divf %count1, %first");
  text.set("left", "arith.subf %total, %count1");
  text.set("fall", "arith.divf %left, %second");
  text.set("scale", "arith.minimumf %rise, %fall");
  text.set("isOver", "arith.cmpf ogt, %count1, %total");
  text.constant("interval", schedule.decaySteps);
  text.set("behind", "arith.subf %count1, %total");
  text.set("after", "arith.divf %behind, %interval");
}

std::string zero::writeCycleRate(const CycleSchedule &schedule) {
  ScheduleText text;
  writeCycle(text, schedule);
  text.constant("low", schedule.low);
  text.constant("range", schedule.high - schedule.low);
  text.set("cycle", "math.fma %range, %scale, %low");
  text.constant("decay", schedule.decay);
  text.set("divisor", "math.fma %decay, %after, %one");
  text.set("decayed", "arith.divf %low, %divisor");
  text.set("lr", "arith.select %isOver, %decayed, %cycle");
  return text.finish();
}

std::string zero::writeCycleMomentum(const CycleSchedule &schedule) {
  ScheduleText text("beta1");
  writeCycle(text, schedule);
  text.constant("low", schedule.low);
  text.constant("high", schedule.high);
  text.constant("range", schedule.low - schedule.high);
  text.set("cycle", "math.fma %range, %scale, %high");
  text.constant("growth", schedule.decay);
  text.set("factor", "math.fma %growth, %after, %one");
  text.set("grown", "arith.mulf %high, %factor");
  text.set("rest", "arith.select %isOver, %grown, %cycle");
  text.comment("DeepSpeed begins with the other end of the cycle.");
  text.set("isFirst", "arith.cmpf oeq, %count1, %zero");
  text.set("beta1", "arith.select %isFirst, %low, %rest");
  return text.finish();
}
