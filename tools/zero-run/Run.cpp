//===- Run.cpp - Steps of one engine, and of one to compare with ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Run.h"

#include "tools/zero-run/Floats.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace zero;

void Run::tell(StringRef what, int64_t index, int64_t part) {
  constexpr int64_t kParts = 4;
  int64_t done = index - first;
  progress.update(llvm::formatv("step {0} of {1}: {2}", done + 1, steps, what),
                  done * kParts + part, steps * kParts);
}

LogicalResult Run::run() {
  progress.update("setting initial values", 0, 0);
  if (failed(bind())) {
    report.addStop("initial values cannot be set");
    return failure();
  }
  report.start();
  if (failed(runSteps()))
    return failure();
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (std::optional<zero_rt_counters> counters = engine->getCounters(rank))
      report.counters.push_back(*counters);
  if (!report.isJson()) // only that has the hash
    return success();
  progress.update("hashing the state", 0, 0);
  return hashState();
}

LogicalResult Run::runSteps() {
  if (!load.empty()) {
    FailureOr<LoadedAt> loaded = engine->load(load);
    if (failed(loaded)) {
      report.addStop("the checkpoint cannot be loaded");
      return failure();
    }
    first = loaded->number;
  }
  for (int64_t i = first; i < first + steps; ++i)
    if (failed(runStep(i))) {
      report.addStop("the run stopped in step " + llvm::Twine(i));
      return failure();
    }
  if (save.empty() || succeeded(saveCheckpoint(first + steps)))
    return success();
  report.addStop("the checkpoint cannot be saved");
  return failure();
}

/// Saves behind |number| steps, or within the next one.
LogicalResult Run::saveCheckpoint(int64_t number) {
  if (saveWithin == 0)
    return engine->save(save, number);
  std::vector<RankInputs> delivered = deliver(number);
  for (RankInputs &rank : delivered) {
    int64_t count = rank.backwards.size();
    rank.backwards.resize(std::min(saveWithin, count));
  }
  return engine->saveWithin(delivered, save, number);
}

LogicalResult Run::bind() {
  for (auto [i, info] : llvm::enumerate(parameters)) {
    std::vector<double> values = numbers->getInitial(i, info);
    if (failed(engine->bind(info, values)) ||
        (reference && failed(reference->bind(info, values))))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// One step
//===----------------------------------------------------------------------===//

std::vector<double> Run::getInputs(int64_t index, int64_t rank) const {
  if (!given.empty())
    return given;
  std::vector<double> passed;
  double next = 0.01; // another number for each argument
  for (auto [i, info] : llvm::enumerate(inputs)) {
    passed.push_back(
        info.share.empty()
            ? next
            : numbers->getShare(i, index, info.share[rank], info.shares));
    next *= 3;
  }
  return passed;
}

/// |gradient| times the loss scale, in the type it arrives in.
static std::vector<double> scaleUp(std::vector<double> gradient, double scale,
                                   const ParameterInfo &info) {
  if (scale != 1)
    for (double &value : gradient)
      value = roundTo(*getFormat(info.arrivalType), value * scale);
  return gradient;
}

std::vector<RankInputs> Run::deliver(int64_t index) {
  double scale = engine->getLossScale();
  int64_t count = backwards[index % backwards.size()];
  std::vector<RankInputs> delivered(ranks);
  for (int64_t r = 0; r < ranks; ++r) {
    delivered[r].inputs = getInputs(index, r);
    delivered[r].measures = measures;
    delivered[r].backwards.resize(count);
    for (int64_t k = 0; k < count; ++k)
      if (hints == Hints::random ? numbers->isBegunAsLast(index, k)
                                 : hints == Hints::last && k + 1 == count)
        delivered[r].begunAsLast.insert(k);
  }
  auto fill = [&](int64_t r, int64_t k) {
    auto &arrived = delivered[r].backwards[k];
    for (auto [i, info] : llvm::enumerate(parameters)) {
      if (!info.holders[r])
        continue;
      if (leavesOut && info.optional &&
          numbers->isAbsent(i, index, info.giver[r], k))
        continue;
      if (!file)
        arrived[info.name] = info.take(
            scaleUp(numbers->getGradient(i, info, index, info.giver[r], ranks,
                                         k, count),
                    scale, info),
            r);
      else if (auto gradient = file->find(index, k, r, info))
        arrived[info.name] = scaleUp(std::move(*gradient), scale, info);
    }
  };
  if (file)
    for (int64_t i = 0; i < ranks * count; ++i)
      fill(i / count, i % count);
  else
    llvm::parallelFor(0, ranks * count,
                      [&](size_t i) { fill(i / count, i % count); });
  return delivered;
}

std::vector<MissingGradient> Run::findMissing(ArrayRef<RankInputs> delivered) {
  std::vector<MissingGradient> missing;
  for (auto [r, rank] : llvm::enumerate(delivered))
    for (auto [k, arrived] : llvm::enumerate(rank.backwards))
      for (const ParameterInfo &info : parameters)
        if (info.holders[r] && !info.optional && !arrived.contains(info.name))
          missing.push_back(
              {info.name, static_cast<int64_t>(r), static_cast<int64_t>(k)});
  return missing;
}

LogicalResult Run::runStep(int64_t index) {
  double scale = engine->getLossScale();
  tell("making gradients", index, 0);
  std::vector<RankInputs> delivered = deliver(index);
  tell("running the step", index, 1);
  FailureOr<StepResult> result = engine->apply(delivered);
  if (failed(result))
    return failure();
  StepReport step{index, std::move(*result), {}, scale};
  if (step.result.outcome == Outcome::refused_missing_gradient)
    step.missing = findMissing(delivered);
  progress.clear();
  report.addStep(step);
  LogicalResult compared = reference ? compareStep(step, delivered) : success();
  progress.setSummary(report.getSummary());
  return compared;
}

//===----------------------------------------------------------------------===//
// The comparison
//===----------------------------------------------------------------------===//

LogicalResult Run::compareStep(const StepReport &step,
                               ArrayRef<RankInputs> delivered) {
  tell("running the reference", step.index, 2);
  FailureOr<StepResult> expected = reference->apply(delivered);
  if (failed(expected))
    return failure();
  if (expected->outcome != step.result.outcome) {
    StepReport other{step.index, std::move(*expected), findMissing(delivered),
                     step.lossScale};
    report.setFirstOutside(
        llvm::formatv("step {0} is {1}, expected {2} as in the "
                      "reference",
                      step.index, step.describe(), other.describe())
            .str());
    // From here on nothing is equal.
    return failure();
  }
  if (engine->getLossScale() != reference->getLossScale()) {
    report.setFirstOutside(
        llvm::formatv(
            "the loss scale after step {0} is {1}, expected {2} as in "
            "the reference",
            step.index, engine->getLossScale(), reference->getLossScale())
            .str());
    return failure();
  }
  // What a refused step computes has no meaning.
  if (step.getOutcomeKind() != OutcomeKind::refused)
    compareReported(step, *expected);
  return compareState(step.index);
}

void Run::compareReported(const StepReport &step, const StepResult &expected) {
  for (auto [i, name] : llvm::enumerate(report.valueNames)) {
    Number got{step.result.values[i], 0};
    Number wanted{expected.values[i], expected.bounds[i]};
    Difference difference = compare(got, wanted);
    report.addReportedDifference(difference);
    if (difference.outside)
      report.setFirstOutside(
          "reported " + llvm::Twine(name) + " of step " +
          llvm::Twine(step.index) +
          llvm::formatv(" is {0}", difference.describe()).str());
  }
}

void Run::record(StringRef role, const ParameterInfo &info, int64_t step,
                 const Difference &difference) {
  report.addDifference(role, difference);
  if (difference.first)
    report.setFirstOutside(
        llvm::formatv("{0} of @{1}[{2}] after step {3} is "
                      "{4}",
                      role, info.name,
                      sample ? sample->getPosition(info, *difference.first)
                             : *difference.first,
                      step, difference.describe())
            .str());
}

LogicalResult Run::compareState(int64_t index) {
  tell("comparing", index, 3);
  for (const ParameterInfo &info : parameters) {
    for (int64_t r = 0; r < ranks; ++r) {
      if (!info.holders[r])
        continue;
      auto got = engine->getParameter(r, info);
      auto expected = reference->getParameter(r, info);
      if (failed(got) || failed(expected))
        return failure();
      record("parameter", info, index,
             compare(pick(info, std::move(*got)), *expected));
    }
    for (StringRef role : roles) {
      auto got = engine->getState(role, info);
      auto expected = reference->getState(role, info);
      if (failed(got) || failed(expected))
        return failure();
      // Parameters that are their own master weights have none besides.
      if (got->empty())
        continue;
      record(role, info, index,
             compare(pick(info, std::move(*got)), *expected));
    }
  }
  return success();
}

LogicalResult Run::hashState() {
  std::vector<double> values{engine->getLossScale()};
  auto append = [&](FailureOr<std::vector<Number>> state) {
    if (failed(state))
      return failure();
    for (const Number &number : *state)
      values.push_back(number.value);
    return success();
  };
  for (const ParameterInfo &info : parameters) {
    bool ok = succeeded(append(engine->getParameter(info.getHolder(), info)));
    for (StringRef role : roles)
      ok = ok && succeeded(append(engine->getState(role, info)));
    if (ok)
      continue;
    report.addError(ExitCode::failed, "the final state of @" +
                                          llvm::Twine(info.name) +
                                          " cannot be read");
    return failure();
  }
  auto *bytes = reinterpret_cast<const uint8_t *>(values.data());
  uint64_t hash =
      llvm::xxh3_64bits(ArrayRef(bytes, values.size() * sizeof(double)));
  report.stateHash = llvm::formatv("{0:x16}", hash).str();
  return success();
}
