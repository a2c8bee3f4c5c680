//===- Judge.cpp - What a step does, by running it ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Judge.h"

#include "dialect/zero/ZeroDialect.h"

#include "llvm/ADT/Hashing.h"

#include <cmath>
#include <limits>
#include <map>
#include <random>

using namespace mlir;
using namespace zero;
using namespace zero::test;

Subject test::getSubject(ModuleOp logical) {
  Subject subject;
  subject.states.push_back("master");
  for (auto op : logical.getOps<OptimizerOp>())
    for (auto name : op.getStateNames().getAsRange<StringAttr>())
      if (!llvm::is_contained(subject.states, name.getValue()))
        subject.states.push_back(name.getValue().str());
  for (auto step : logical.getOps<StepOp>()) {
    subject.poison = step.getNonfinite() == Nonfinite::apply;
    step.walk([&](UpdateOp update) {
      auto optimizer =
          logical.lookupSymbol<OptimizerOp>(update.getOptimizerAttr());
      for (auto name : optimizer.getCounterNames().getAsRange<StringAttr>())
        subject.counters.push_back(
            (update.getGroup() + "." + name.getValue()).str());
    });
  }
  for (auto rule : logical.getOps<CounterRule>())
    for (auto name : rule.getCounterNames().getAsRange<StringAttr>())
      subject.counters.push_back(
          (SymbolTable::getSymbolName(rule).getValue() + "." + name.getValue())
              .str());
  for (auto mesh : logical.getOps<MeshOp>()) {
    subject.ranks = mesh.getNumRanks();
    subject.parameters = readParameters(logical, mesh);
    for (auto step : logical.getOps<StepOp>()) {
      subject.inputs = readInputs(step, mesh);
      subject.oneBackward = step.getOneBackward();
    }
  }
  return subject;
}

namespace {
/// One step of a script.
struct ScriptedStep {
  std::vector<int> backwards = {1}; // by rank, the last for all that follow
  int absentIn = -1;                // backward pass without optional gradients
  int missing = -1;                 // which parameter has no gradient
  int nonfinite = -1;               // which one has a nan in it
  double scale = 1.0 / 64;          // of gradients
  bool early = false;               // missing or nan in the first backward pass
  bool closesLast = false;          // by accumulate, and not by what follows
  bool isDiscarded = false;         // given up, and not applied
  bool measures = false;            // before either
  bool measuresOnFirst = false;     // on rank 0 only
  double counts = 1;                // times what ranks count, where they do
  double input = 0.02996;           // a learning rate, far from f16 and bf16
  unsigned hinted = 0;       // bit b: backward pass b is begun as the last
  bool hintsOnFirst = false; // on rank 0 only
  bool differs = false;      // the inputs of the last rank, where they may not
  /// By backward pass, a bit for each parameter without a gradient on any rank.
  std::vector<unsigned> lost = {};
};
using Scripts = std::vector<ScriptedStep>;
} // namespace

/// Multiples of |scale| up to 256, and fractions of it where |type| holds more
/// bits than bf16: sums of few of them are exact, and no narrower type holds
/// them.
static std::vector<double> draw(std::mt19937_64 &random, Type type,
                                int64_t count, double scale = 1.0 / 64) {
  int more = std::min<int>(
      cast<FloatType>(type).getFPMantissaWidth() -
          BFloat16Type::get(type.getContext()).getFPMantissaWidth(),
      5);
  std::uniform_int_distribution<int> number(-(256 << more), 256 << more);
  std::vector<double> values(count);
  for (double &value : values) {
    int drawn = number(random);
    value = (drawn == 0 ? 1 : drawn) * scale / (1 << more);
  }
  return values;
}

/// With gradients times |lossScale|.
static std::vector<RankInputs> getInputs(const Subject &subject,
                                         const ScriptedStep &script,
                                         double lossScale,
                                         std::mt19937_64 &random) {
  std::vector<RankInputs> inputs(subject.ranks);
  // What ranks promise to deliver alike is drawn once: by parameter and
  // backward.
  std::map<std::tuple<const ParameterInfo *, int64_t, int>, std::vector<double>>
      shared;
  std::vector<std::vector<double>> shares;
  // Few, so that there is something to clip.
  std::uniform_int_distribution<int> tokens(0, 3);
  for (const InputInfo &info : subject.inputs) {
    std::vector<double> &drawn = shares.emplace_back();
    for (int64_t i = 0; i < info.shares && !info.share.empty(); ++i)
      drawn.push_back((tokens(random) + int(i == 0)) * script.counts);
  }
  for (int64_t rank = 0; rank < subject.ranks; ++rank) {
    RankInputs &given = inputs[rank];
    double next = script.input; // another number for each input
    for (auto [info, drawn] : llvm::zip_equal(subject.inputs, shares)) {
      bool differs = script.differs && rank > 0 && rank == subject.ranks - 1;
      double common = differs ? 2 * next : next;
      // A step with a max of 0 is refused before it is run.
      if (info.isMaxNorm && common == 0)
        common = 1;
      given.inputs.push_back(drawn.empty() ? common : drawn[info.share[rank]]);
      next *= 3;
    }
    given.closesLast = script.closesLast;
    given.measures = script.measures && (rank == 0 || !script.measuresOnFirst);
    int count =
        script.backwards[std::min<size_t>(rank, script.backwards.size() - 1)];
    for (int b = 0; b < count; ++b) {
      if ((script.hinted >> b & 1) && (rank == 0 || !script.hintsOnFirst))
        given.begunAsLast.insert(b);
      auto &backward = given.backwards.emplace_back();
      for (const ParameterInfo &parameter : subject.parameters) {
        if (!parameter.holders[rank])
          continue;
        std::vector<double> &whole =
            shared[{&parameter, parameter.giver[rank], b}];
        if (whole.empty())
          whole = draw(random, parameter.arrivalType, parameter.elements,
                       script.scale / double(1 << (random() % 8)));
        std::vector<double> values = parameter.take(whole, rank);
        bool isLate = b == (script.early ? 0 : count - 1);
        int64_t lastRank = subject.ranks - 1;
        while (!parameter.holders[lastRank])
          --lastRank;
        bool last = isLate && rank == lastRank;
        bool lastAlike =
            isLate && parameter.giver[rank] == parameter.giver[lastRank];
        unsigned index = &parameter - subject.parameters.data();
        if (parameter.optional && b == script.absentIn)
          continue;
        if (b < int(script.lost.size()) && script.lost[b] >> index & 1)
          continue;
        if (last && int(index) == script.missing)
          continue;
        if (lastAlike && !values.empty() && int(index) == script.nonfinite)
          values.back() = count > 1 || random() % 2
                              ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
        for (double &value : values)
          value *= lossScale;
        backward[parameter.name] = std::move(values);
      }
    }
  }
  return inputs;
}

/// One of each kind that may show something.
static Scripts getScripts(const Subject &subject) {
  Scripts scripts = {// Skipped before anything was applied; all zeros.
                     {{1}, -1, -1, 0},
                     {{1}, -1, -1, -1, 0},
                     {{1}},
                     {{3}},
                     {{2}, 0},
                     {{2}, 1},
                     {{2}},
                     {{1, 2}},
                     {{1}, 0},
                     {{2, 1}},
                     // Nothing to clip.
                     {{3}, -1, -1, -1, 1.0 / 65536},
                     {{1}, -1, -1, -1, 1.0 / 1048576}};
  for (int i = 0; i < int(subject.parameters.size()); ++i)
    for (int backwards : {1, 2}) {
      scripts.push_back({{backwards}, -1, i, -1});
      scripts.push_back({{backwards}, -1, -1, i});
      scripts.push_back({{backwards}, -1, i, -1, 1.0 / 64, true});
    }
  auto add = [&](std::vector<int> backwards, bool closesLast,
                 bool isDiscarded) {
    ScriptedStep &script = scripts.emplace_back();
    script.backwards = std::move(backwards);
    script.closesLast = closesLast;
    script.isDiscarded = isDiscarded;
  };
  for (int backwards : {1, 2}) {
    add({backwards}, /*closesLast=*/false, /*isDiscarded=*/true);
    add({backwards}, true, false);
    add({backwards}, true, true);
    add({backwards}, false, false);
  }
  // A step that is measured is the same step, or none.
  // Ranks meet at the same collectives if only the first of them measures.
  for (int backwards : {1, 2})
    for (bool closesLast : {false, true})
      for (unsigned hinted : {0u, 1u << (backwards - 1)})
        for (int way : {0, 1, 2}) {
          add({backwards}, closesLast, /*isDiscarded=*/way == 0);
          scripts.back().hinted = hinted;
          scripts.back().measures = true;
          scripts.back().measuresOnFirst = way == 1;
        }
  for (int i = 0; i < int(subject.parameters.size()); ++i)
    for (bool isMissing : {true, false})
      for (bool isDiscarded : {true, false}) {
        scripts.push_back({{1}}); // counters begin with another number
        add({1}, false, isDiscarded);
        (isMissing ? scripts.back().missing : scripts.back().nonfinite) = i;
        scripts.back().measures = true;
      }
  // A hint changes nothing, be it right or wrong.
  for (int backwards : {1, 2})
    for (unsigned hinted = 1; hinted < 1u << backwards; ++hinted)
      for (bool closesLast : {false, true})
        for (bool isDiscarded : {false, true}) {
          add({backwards}, closesLast, isDiscarded);
          scripts.back().hinted = hinted;
        }
  for (unsigned hinted : {2u, 5u}) {
    add({3}, false, false);
    scripts.back().hinted = hinted;
  }
  for (int backwards : {1, 2}) {
    const unsigned last = 1u << (backwards - 1);
    // Ranks need not say the same.
    for (bool closesLast : {false, true}) {
      add({backwards}, closesLast, false);
      scripts.back().hinted = last;
      scripts.back().hintsOnFirst = true;
    }
    for (int i = 0; i < int(subject.parameters.size()); ++i) {
      add({backwards}, false, false);
      scripts.back().hinted = last;
      scripts.back().missing = i;
    }
    add({backwards}, false, false);
    scripts.back().hinted = last;
    scripts.back().absentIn = backwards - 1;
  }
  // A group may be skipped where only this gradient is absent.
  for (auto [i, parameter] : llvm::enumerate(subject.parameters))
    for (int backwards : {1, 2})
      if (parameter.optional) {
        add({backwards}, false, false);
        scripts.back().lost.assign(backwards, 1u << i);
      }
  // What did not arrive at last did before.
  add({2}, true, false);
  scripts.back().absentIn = 1;
  add({2, 1}, true, false);
  add({4}, true, false);
  scripts.push_back({{2}});
  for (double counts : {0.0, -1.0, 1e-310, HUGE_VAL, 1.0 / 1024, 1e9})
    scripts.emplace_back().counts = counts;
  scripts.push_back({{1}});
  // A caller that passes another learning rate on one rank.
  for (int backwards : {1, 2}) {
    add({backwards}, false, false);
    scripts.back().differs = true;
    scripts.push_back({{1}});
  }
  // The first step of a warm-up.
  scripts.emplace_back().input = 0;
  scripts.push_back({{1}});
  if (subject.poison) {
    llvm::erase_if(scripts, [](auto &script) { return script.nonfinite >= 0; });
    scripts.push_back({{1}, -1, -1, 0});
  }
  return scripts;
}

/// Steps of up to two backward passes on every path of the protocol, and of
/// three those that take a transition which two do not reach: an early
/// reduction of a sum of two backward passes, after which a third one begins.
static Scripts getPaths() {
  Scripts paths;
  for (int backwards : {1, 2, 3})
    for (unsigned hinted = 0; hinted < 1u << backwards; ++hinted)
      for (bool closesLast : {false, true})
        for (bool isDiscarded : {false, true}) {
          if (backwards == 3 && hinted != 0 && hinted != 2 && hinted != 4)
            continue;
          ScriptedStep &script = paths.emplace_back();
          script.backwards = {backwards};
          script.hinted = hinted;
          script.closesLast = closesLast;
          script.isDiscarded = isDiscarded;
        }
  return paths;
}

/// Steps that are discarded when some of the gradients of their last backward
/// pass have arrived, each before a step that is applied. Buckets of the same
/// backward pass then differ in what they leave in flight.
static void addPartlyArrived(const Subject &subject, Scripts &scripts) {
  size_t count = subject.parameters.size();
  // Parameters arrive from the last to the first.
  for (size_t missing = 1; missing < count; ++missing)
    for (int backwards : {1, 2})
      for (unsigned hinted : {0u, 1u << (backwards - 1)})
        for (int following : {1, 2}) {
          ScriptedStep &script = scripts.emplace_back();
          script.backwards = {backwards};
          script.hinted = hinted;
          script.isDiscarded = true;
          script.lost.resize(backwards);
          script.lost.back() = (1u << missing) - 1;
          scripts.emplace_back().backwards = {following};
        }
}

/// A walk in which what a step of each path leaves in flight meets a step of
/// each other. Gradients that are lost, on some ranks or on all, differ from
/// walk to walk.
static Scripts getWalk(const Subject &subject, unsigned walk) {
  std::mt19937_64 random(walk);
  Scripts paths = getPaths(), scripts;
  // The sequence of de Bruijn: i, then i and j for each j behind it.
  for (size_t i = 0; i < paths.size(); ++i) {
    scripts.push_back(paths[i]);
    for (size_t j = i + 1; j < paths.size(); ++j) {
      scripts.push_back(paths[i]);
      scripts.push_back(paths[j]);
    }
  }
  scripts.push_back(paths.front());
  for (ScriptedStep &script : scripts) {
    script.measures = random() % 2;
    int backwards = script.backwards[0];
    for (int b = 0; b < backwards; ++b) {
      unsigned all = (1u << subject.parameters.size()) - 1;
      unsigned lost = unsigned(random()) & all;
      script.lost.push_back(random() % 2 ? 0 : random() % 3 ? lost : all);
    }
    if (random() % 8 == 0)
      script.missing = int(random() % subject.parameters.size());
    // If ranks wait for each other in backward passes, such a step is refused.
    // To discard it, or to hint what is wrong, is the caller's mistake.
    if (script.hinted == 0 && !script.isDiscarded && random() % 8 == 0) {
      script.backwards = {backwards, 1 + int(random() % 2)};
      script.hintsOnFirst = random() % 2;
      script.hinted = script.hintsOnFirst ? 1u << (backwards - 1) : 0;
    }
  }
  addPartlyArrived(subject, scripts);
  return scripts;
}

/// Of a step, at most.
static constexpr unsigned kMaxResults = 64;

/// With updates as large as parameters.
static Scripts getFewScripts() {
  Scripts scripts(3);
  for (ScriptedStep &script : scripts)
    script.input *= 32;
  return scripts;
}

/// The range of f32 is left, and that of f64 is not.
static Scripts getLargeScripts() {
  Scripts scripts = {{{1}},
                     {{1}, -1, -1, -1, 0x1p94},
                     {{1}},
                     {{2}, -1, -1, -1, 0x1p94},
                     {{1}}};
  return scripts;
}

static Behaviour run(ModuleOp module, const Subject &subject,
                     const Scripts &scripts, Arithmetic arithmetic,
                     unsigned seed, uint64_t order) {
  Behaviour behaviour;
  std::mt19937_64 random(seed);
  auto fail = [&] {
    behaviour.failed = true;
    return behaviour;
  };
  auto interpreter = Interpreter::create(module, arithmetic);
  if (failed(interpreter) || (*interpreter)->getNumRanks() != subject.ranks)
    return fail();
  (*interpreter)->setOrder(order);
  for (const ParameterInfo &parameter : subject.parameters)
    if (failed((*interpreter)
                   ->bindParameter(parameter.name,
                                   draw(random, parameter.storageType,
                                        parameter.elements))))
      return fail();
  unsigned series = 0; // of a step, in the order of the calls of see()
  auto add = [&](ArrayRef<double> numbers) {
    llvm::append_range(behaviour.numbers, numbers);
    behaviour.series.resize(behaviour.numbers.size(), series++);
  };
  auto see = [&](const std::vector<Number> &numbers) {
    add(double(numbers.size()));
    SmallVector<double> values;
    for (const Number &number : numbers)
      values.push_back(number.value);
    add(values);
  };
  auto seeCounters = [&] {
    series = 0;
    for (const std::string &counter : subject.counters)
      see((*interpreter)->getState(counter, ""));
  };
  seeCounters();
  for (const ScriptedStep &script : scripts) {
    if (subject.oneBackward && *llvm::max_element(script.backwards) > 1)
      continue;
    series = 2 * subject.counters.size();
    std::vector<RankInputs> inputs =
        getInputs(subject, script, (*interpreter)->getLossScale(), random);
    if (script.isDiscarded) {
      if (failed((*interpreter)->discard(inputs)))
        return fail();
    } else {
      auto result = (*interpreter)->apply(inputs);
      if (failed(result))
        return fail();
      // One backward pass more on another rank is refused, or no step at all.
      add(double(result->outcome));
      for (double value : result->values)
        add(value);
    }
    series = 2 * subject.counters.size() + kMaxResults;
    for (const ParameterInfo &parameter : subject.parameters) {
      for (int64_t rank = 0; rank < subject.ranks; ++rank)
        see((*interpreter)->getParameter(rank, parameter.name));
      for (const std::string &state : subject.states)
        see((*interpreter)->getState(state, parameter.name));
    }
    seeCounters();
  }
  return behaviour;
}

Behaviour test::run(ModuleOp module, const Subject &subject, Script script,
                    Arithmetic arithmetic, unsigned seed) {
  Scripts scripts = script == Script::few     ? getFewScripts()
                    : script == Script::large ? getLargeScripts()
                                              : getScripts(subject);
  return ::run(module, subject, scripts, arithmetic, seed, /*order=*/0);
}

Behaviour test::runWalk(ModuleOp module, const Subject &subject, unsigned walk,
                        uint64_t order) {
  return ::run(module, subject, getWalk(subject, walk), Arithmetic::F64, walk,
               order);
}

double test::getDistance(const Behaviour &a, const Behaviour &b) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (a.failed || b.failed || a.numbers.size() != b.numbers.size())
    return a.failed && b.failed ? 0 : kInfinite;
  double largest = 0;
  for (auto [x, y] : llvm::zip_equal(a.numbers, b.numbers)) {
    if (std::isnan(x) || std::isnan(y)) {
      if (std::isnan(x) != std::isnan(y))
        return kInfinite;
      continue;
    }
    if (std::isinf(x) != std::isinf(y))
      return kInfinite;
    if (x != y)
      largest =
          std::max(largest, std::abs(x - y) /
                                std::max({std::abs(x), std::abs(y), 1e-3}));
  }
  return largest;
}

std::vector<double> test::getErrors(const Behaviour &exact,
                                    const Behaviour &rounded) {
  std::vector<double> largest, errors;
  for (auto [x, y, series] :
       llvm::zip_equal(exact.numbers, rounded.numbers, exact.series)) {
    if (series >= errors.size()) {
      largest.resize(series + 1);
      errors.resize(series + 1);
    }
    if (std::isfinite(x))
      largest[series] = std::max(largest[series], std::abs(x));
    if (std::isfinite(x) && std::isfinite(y))
      errors[series] = std::max(errors[series], std::abs(x - y));
  }
  for (auto [error, number] : llvm::zip_equal(errors, largest))
    error = number > 0 ? error / number : error;
  return errors;
}
