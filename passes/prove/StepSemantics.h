//===- StepSemantics.h - What a step does, whatever its phase ---------*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step at any phase is read into one StepSemantics: what each element,
// counter and result of the step becomes, as a function of what arrived and of
// what was there before. Two steps are the same if their meanings are.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_STEPSEMANTICS_H
#define ZERO_PASSES_PROVE_STEPSEMANTICS_H

#include "passes/prove/Number.h"

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <array>
#include <map>

namespace zero::prove {

/// The axes of a mesh that have more than one rank.
class MeshAxes {
public:
  /// A name and the ranks of each, the axes of one rank left out.
  using List = std::vector<std::pair<std::string, int64_t>>;

  MeshAxes() = default;
  explicit MeshAxes(List axes) : axes(std::move(axes)) {}
  explicit MeshAxes(MeshOp mesh);

  /// Those of |names| that have more than one rank.
  AxisSet getSet(llvm::ArrayRef<mlir::StringAttr> names) const;
  AxisSet getSet(mlir::ArrayAttr names) const;
  AxisSet getAll() const { return (AxisSet(1) << axes.size()) - 1; }
  /// The ranks that differ over |set|.
  int64_t getNumRanks(AxisSet set) const;
  /// "'edp' and 'ep'".
  std::string describe(AxisSet set) const;
  std::vector<std::string> getNames() const;
  bool operator==(const MeshAxes &other) const { return axes == other.axes; }

private:
  List axes;
};

/// The elements [begin, end) of a parameter, which all become the same function
/// of themselves. Roles are "parameter", "master" and the optimizer's states.
struct IntervalSemantics {
  int64_t begin = 0;
  int64_t end = 0;
  llvm::SmallVector<std::pair<std::string, Number>, 4> roles;

  const Number *find(llvm::StringRef role) const;
};

struct ParameterSemantics {
  ParameterOp op;
  /// That a rank holds; intervals are of these.
  int64_t elements = 0;
  /// The axes over which gradients arrive as addends.
  AxisSet arrivesOver = 0;
  /// What makes the new values, for diagnostics.
  mlir::Operation *writer = nullptr;
  /// normalize / prescaled: the factor of one arriving gradient.
  Expr normalization = nullptr;
  /// The type in which gradients are kept.
  Precision kept;
  /// The narrowest type that elements went to other ranks in which are summed
  /// over, as their squares are for a norm.
  Precision summedReduceDtype;
  mlir::Type arrival;
  std::vector<IntervalSemantics> intervals;
};

/// Whether a step is applied in one of the situations an outcome is about.
struct Situation {
  bool nonfinite = false;
  bool missing = false;
  bool unequal = false;
  bool noTokens = false;
};
inline constexpr int kNumSituations = 16;
/// The outcome in each.
using Outcomes = std::array<double, kNumSituations>;
Situation getSituation(int index);
std::string describe(Situation situation);
std::string describeOutcome(double outcome);

/// A scalar that the caller passes to apply.
struct InputSemantics {
  /// The axes over which each rank passes an addend of its own.
  AxisSet over = 0;
  bool isTokens = false;

  bool operator==(const InputSemantics &other) const {
    return over == other.over && isTokens == other.isTokens;
  }
};

/// What an applied step does.
struct StepSemantics {
  mlir::Operation *step = nullptr;
  MeshAxes axes;
  llvm::MapVector<mlir::StringAttr, ParameterSemantics> parameters;
  llvm::SmallVector<std::pair<std::string, Number>> counters;
  llvm::SmallVector<std::pair<std::string, Number>> results;
  /// What the counters of the loss scale and of schedules become where the step
  /// is skipped.
  llvm::SmallVector<std::pair<std::string, Number>> skipped;
  /// The name of the loss scale that gradients arrive with; empty: none.
  std::string lossScale;
  /// What counters are before the first step.
  llvm::SmallVector<std::pair<std::string, Number>> initials;
  /// The outcome in each situation.
  Outcomes outcomes = {};
  /// Scalars that the caller passes to apply.
  llvm::SmallVector<InputSemantics> inputs;
  /// Whether gradients are divided by the number of tokens.
  bool dividesByTokens = false;
  /// Whether ranks may make different numbers of backward passes: see
  /// StepOp::takesUnequalBackwards.
  bool takesUnequal = false;
  /// The axes over which ranks wait for each other in each backward pass. Ranks
  /// with unequal backward passes hang there; those that differ over other axes
  /// only do not, and are refused.
  AxisSet meetsOver = 0;
  /// Whether ranks wait for each other in a backward pass that is begun as the
  /// last.
  bool takesHints = false;
  /// The same among ranks that are on the same pipeline stages.
  llvm::SmallVector<std::pair<llvm::ArrayRef<AxisCoordinate>, AxisSet>>
      meetsOnStages;

  /// Says that ranks that are on |stages| (empty: all) meet over |set|.
  void addMeeting(llvm::ArrayRef<AxisCoordinate> stages, AxisSet set);
  /// The axes over which those that are on |stages| meet.
  AxisSet getMeetings(llvm::ArrayRef<AxisCoordinate> stages) const;
  int64_t getNumRanks() const { return axes.getNumRanks(axes.getAll()); }
  /// Whether no rank can make a backward pass without all others.
  bool allMeet() const { return meetsOver == axes.getAll(); }
};

/// Whether the calls of a step can lead to |situation|.
bool mayHappen(Situation situation, const StepSemantics &semantics);

/// Counts errors, so that one run reports all of them.
class Report {
public:
  mlir::InFlightDiagnostic error(mlir::Operation *op) {
    ++errors;
    return op->emitError();
  }
  /// Adds |example| to a diagnostic, if there is one.
  static void attach(mlir::InFlightDiagnostic &diagnostic, mlir::Location loc,
                     const std::string &example) {
    if (!example.empty())
      diagnostic.attachNote(loc) << example;
  }
  /// For an error that was emitted elsewhere.
  void count() { ++errors; }
  /// Begins to count anew.
  void reset() { errors = 0; }
  bool hasErrors() const { return errors > 0; }
  unsigned getNumErrors() const { return errors; }

private:
  unsigned errors = 0;
};

/// A factor that clips, and the parameters whose norm it depends on.
struct Clipping {
  bool isClipping = false;
  llvm::StringSet<> counted; // each element once
  llvm::StringSet<> miscounted;
};

/// Everything one proof shares.
struct Proof {
  Algebra algebra;
  /// Whether steps are compared with another one, which tells what updates are.
  bool hasReference = false;
  Report report;
  /// By factor: all gradients of a step have the same.
  llvm::DenseMap<Expr, Clipping> clippings;
  /// By number: gradients that it is made of, other than those of norms.
  llvm::DenseMap<Expr, llvm::SmallVector<BaseRef, 2>> gradients;
  /// By expression, ranks, whether they wait in the loop and whether tokens
  /// count: each way to apply has the same.
  std::map<std::tuple<Expr, int64_t, bool, bool>, Outcomes> outcomes;
};

/// Reads the step of |module|, at whatever phase it is. Violations are reported
/// on the way; nothing is returned where the step cannot be read.
std::optional<StepSemantics> readSemantics(Proof &proof, mlir::ModuleOp module);

/// One step of |module| in the zero dialect, or a scheduled one.
std::optional<StepSemantics> readStep(Proof &proof, StepOp step);
std::optional<StepSemantics> readProgram(Proof &proof, zrt::ProgramOp program);

/// Reports where |meaning| breaks an obligation that every step has: what is
/// still wrong once the whole step is known.
void checkSemantics(Proof &proof, const StepSemantics &semantics);

/// Reports where |second| does something else than |first|.
void compareSemantics(Proof &proof, const StepSemantics &first,
                      const StepSemantics &second);

//===----------------------------------------------------------------------===//
// What readers share
//===----------------------------------------------------------------------===//

/// That |step| runs on the ranks of |mesh|, which may be null. Reports a mesh
/// that the proof does not know.
bool readMesh(Proof &proof, mlir::Operation *step, MeshOp mesh,
              StepSemantics &semantics);

/// The value of a monomial in a step on |mesh|, where |tokens| and |lossScale|
/// may be given other than as symbols.
Expr getMonomial(Algebra &algebra, MeshOp mesh,
                 llvm::ArrayRef<ScaleFactor> factors, Expr tokens = nullptr,
                 Expr lossScale = nullptr);

/// The number that a rank passes as input |index|, whatever it is.
Expr getInput(Algebra &algebra, size_t index, const InputSemantics &input);

/// How many gradients did not arrive on this rank.
Expr getMissing(Algebra &algebra, const MeshAxes &axes);

/// The sum of a number over the ranks of |set|. Over |stages| not all ranks
/// take part: what these have alike has no sum that is known.
Expr sumOverRanks(Algebra &algebra, Expr a, const MeshAxes &axes, AxisSet set,
                  AxisSet stages = 0);
/// The same, summed in the type of |sumType|. If |a| is a gradient that is
/// still this rank's share over all axes that it |arrivesOver|, its last
/// conversion was one to the reduce dtype.
Number sumOverRanks(Algebra &algebra, Number a, AxisSet arrivesOver,
                    Precision sumType, const MeshAxes &axes, AxisSet set,
                    AxisSet stages = 0);

/// |a| on the first rank over |set|, 0 on the others.
Expr countReplicatedOnce(Algebra &algebra, Expr a, AxisSet set);

/// The outcome in each situation, where it is computed from sums over all
/// ranks. Reports what only one rank knows, and elements that are not looked
/// at.
void readOutcome(Proof &proof, mlir::Operation *op, Expr outcome,
                 StepSemantics &semantics);

/// What |a| depends on and must not: something that nobody wrote, or that one
/// rank alone knows. Empty if there is nothing.
std::string describeUnknown(Expr a);

/// As arith computes it from the operands of zero.outcome.
Expr getOutcome(Algebra &algebra, OutcomeOp op,
                llvm::function_ref<Expr(mlir::Value)> getOperand);

/// |result| where gradients can be divided by |number|, which is positive and
/// has an inverse; |instead| where they can not. As arith computes it.
Expr replaceUnlessDivisor(Algebra &algebra, Expr number, Expr instead,
                          Expr result);

/// A sum over the elements of a parameter, term by term, of which each rank has
/// its own over the axes |over|. |computedIn| is the narrowest type that
/// addends were computed in.
Expr sumOverElements(Algebra &algebra, Expr element, llvm::StringRef parameter,
                     AxisSet over, Precision computedIn = {});

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_STEPSEMANTICS_H
