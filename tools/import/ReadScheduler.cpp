//===- ReadScheduler.cpp - The learning rate by step ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Config.h"
#include "tools/import/ReadJson.h"
#include "tools/import/RuleTexts.h"

#include "llvm/ADT/STLExtras.h"

using namespace zero;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

static constexpr llvm::StringLiteral kSchedulerType = "scheduler.type";
static constexpr llvm::StringLiteral kRate = "optimizer.params.lr";
static constexpr llvm::StringLiteral kPrefix = "scheduler.params.";

static std::string getSchedulerPath(const Twine &parameter) {
  return (kPrefix + parameter).str();
}

/// The rate of the optimizer, which some schedules multiply; nothing where the
/// caller gives it at run time.
static std::optional<double> getOptimizerRate(ConfigReader &reader) {
  const HyperValue &lr = reader.config.recipe.hyper["lr"];
  if (lr.input.empty())
    return lr.number;
  reader.failAuto(kRate);
  return std::nullopt;
}

/// Reports the parameters that |type| does not take.
static void checkSchedulerParameters(ConfigReader &reader, StringRef type) {
  const json::Value *value = reader.find("scheduler.params");
  const json::Object *object = value ? value->getAsObject() : nullptr;
  if (!object)
    return;
  std::vector<std::string> strange;
  for (const auto &[name, entry] : *object) {
    StringRef key = name;
    bool isTotal = key == "total_num_steps";
    bool isRatio = key == "warmup_min_ratio" || key == "cos_min_ratio";
    bool isRate = key == "warmup_min_lr" || key == "warmup_max_lr";
    bool isTaken = key == "last_batch_iteration";
    if (type == "OneCycle")
      isTaken |= key.starts_with("cycle_") || key.starts_with("decay_");
    else if (type == "LRRangeTest")
      isTaken |= key.starts_with("lr_range_test_");
    else if (type == "WarmupCosineLR")
      isTaken |= isTotal || isRatio || key == "warmup_num_steps" ||
                 key == "warmup_type";
    else
      isTaken |= isRate || key == "warmup_num_steps" || key == "warmup_type" ||
                 (isTotal && type == "WarmupDecayLR");
    if (!isTaken)
      strange.push_back(key.str());
  }
  llvm::sort(strange);
  for (const std::string &key : strange)
    reader.fail(getSchedulerPath(key), "and " + type +
                                           " has no such parameter; remove "
                                           "it");
}

static void readWarmup(ConfigReader &reader, WarmupSchedule &schedule) {
  std::string count = getSchedulerPath("warmup_num_steps");
  // DeepSpeed's logarithm needs two steps at least.
  schedule.warmup =
      std::max<int64_t>(2, reader.getCount(count, schedule.warmup, 1));
  reader.decide(count, "rises for " + Twine(schedule.warmup) + " steps");
  std::string type = getSchedulerPath("warmup_type");
  StringRef text = reader.getString(type).value_or("log");
  if (text != "log" && text != "linear")
    return reader.fail(type, "expected log or linear");
  schedule.isLogarithmic = text == "log";
  reader.decide(type, schedule.isLogarithmic ? "as a logarithm"
                                             : "in a straight line");
}

static void readTotal(ConfigReader &reader, WarmupSchedule &schedule) {
  std::string path = getSchedulerPath("total_num_steps");
  if (!reader.find(path))
    return reader.fail(path, "expected the number of steps of the training; "
                             "add --set=" +
                                 path + "=1000");
  schedule.total = reader.getCount(path, 0, 1);
  reader.decide(path, "falls until step " + Twine(schedule.total));
}

/// A rate, and the key it comes from.
static double readRate(ConfigReader &reader, StringRef parameter,
                       double otherwise) {
  std::string path = getSchedulerPath(parameter);
  // The only key for which the Trainer has a constant.
  bool isConstant = parameter == "warmup_min_lr" && reader.isAuto(path);
  double rate = isConstant ? 0 : reader.getConstant(path, otherwise, 0);
  reader.decide(path, formatNumber(rate));
  return rate;
}

static void readWarmupRates(ConfigReader &reader, StringRef type,
                            WarmupSchedule &schedule) {
  constexpr llvm::StringLiteral kHigh = "warmup_max_lr";
  bool isDecay = type == "WarmupDecayLR";
  schedule.low = schedule.first = readRate(reader, "warmup_min_lr", 0);
  double high = 1e-3;
  // null is the rate of the optimizer for both, and only WarmupLR has it as its
  // default.
  std::string path = getSchedulerPath(kHigh);
  if (reader.isNull(path) || (!isDecay && !reader.find(path))) {
    high = getOptimizerRate(reader).value_or(0);
    reader.decide(kRate, "the rate after the warm-up");
  }
  schedule.high = readRate(reader, kHigh, high);
  readWarmup(reader, schedule);
  if (!isDecay)
    return;
  schedule.tail = WarmupSchedule::Tail::linear;
  readTotal(reader, schedule);
}

static void readCosine(ConfigReader &reader, WarmupSchedule &schedule) {
  double rate = getOptimizerRate(reader).value_or(0);
  reader.decide(kRate, "the rate after the warm-up");
  schedule.high = rate;
  schedule.first = 0;
  schedule.low = rate * readRate(reader, "warmup_min_ratio", 0);
  schedule.floor = rate * readRate(reader, "cos_min_ratio", 1e-4);
  schedule.tail = WarmupSchedule::Tail::cosine;
  readWarmup(reader, schedule);
  readTotal(reader, schedule);
}

/// Writes the schedule of |type|, which is no OneCycle.
static std::string readRates(ConfigReader &reader, StringRef type) {
  if (type == "LRRangeTest") {
    double min = readRate(reader, "lr_range_test_min_lr", 1e-3);
    double growth = readRate(reader, "lr_range_test_step_rate", 1);
    std::string size = getSchedulerPath("lr_range_test_step_size");
    int64_t steps = reader.getCount(size, 2000, 1);
    reader.decide(size, "an interval has " + Twine(steps) + " steps");
    return writeRangeTest(min, growth, steps);
  }
  WarmupSchedule schedule;
  if (type == "WarmupCosineLR")
    readCosine(reader, schedule);
  else
    readWarmupRates(reader, type, schedule);
  return writeWarmupSchedule(schedule);
}

void zero::readScheduler(ConfigReader &reader) {
  constexpr llvm::StringLiteral kKnown =
      "expected WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle or "
      "LRRangeTest";
  std::optional<StringRef> type = reader.getString(kSchedulerType);
  if (!type) {
    if (reader.find("scheduler"))
      reader.fail(kSchedulerType, kKnown);
    return;
  }
  if (!llvm::is_contained({"WarmupLR", "WarmupDecayLR", "WarmupCosineLR",
                           "OneCycle", "LRRangeTest"},
                          *type))
    return reader.fail(kSchedulerType, kKnown +
                                           "; any other can be written as a "
                                           "zero.schedule");
  checkSchedulerParameters(reader, *type);
  Recipe &recipe = reader.config.recipe;
  reader.decide(kRate, "not used: the schedule has rates of its own");
  if (*type == "OneCycle")
    readOneCycle(reader);
  else
    recipe.schedules["lr"] = readRates(reader, *type);
  HyperValue &lr = recipe.hyper["lr"];
  lr = {};
  lr.schedule = "lr";
  reader.decide(kSchedulerType,
                "lr is the zero.schedule @lr, on applied steps");
}
