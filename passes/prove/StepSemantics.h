//===- StepSemantics.h - The semantics of a step at any phase ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step at any phase is read into one StepSemantics: the new value of each
// element, counter and result, as a function of gradients, inputs and old
// values. Two steps are the same if their StepSemantics are equal.
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
#include <memory>
#include <set>

namespace zero::prove {

/// The axes of a mesh that have more than one rank.
class MeshAxes {
public:
  /// The name and the size of each axis. Axes of one rank are left out.
  using List = std::vector<std::pair<std::string, int64_t>>;

  MeshAxes() = default;
  explicit MeshAxes(List axes) : axes(std::move(axes)) {}
  explicit MeshAxes(MeshOp mesh);

  /// The axes of |names| that have more than one rank.
  AxisSet getSet(llvm::ArrayRef<mlir::StringAttr> names) const;
  AxisSet getSet(mlir::ArrayAttr names) const;
  AxisSet getAll() const { return (AxisSet(1) << axes.size()) - 1; }
  /// The product of the sizes of the axes of |set|.
  int64_t getNumRanks(AxisSet set) const;
  /// "'edp' and 'ep'".
  std::string describe(AxisSet set) const;
  std::vector<std::string> getNames() const;
  bool operator==(const MeshAxes &other) const { return axes == other.axes; }

private:
  List axes;
};

/// The elements [begin, end) of a parameter. One expression per role describes
/// all of them. Roles are "parameter", "master" and the optimizer's states.
struct IntervalSemantics {
  int64_t begin = 0;
  int64_t end = 0;
  llvm::SmallVector<std::pair<std::string, Number>, 4> roles;

  const Number *find(llvm::StringRef role) const;
};

/// The names of parameters without whose gradients a step leaves a number as it
/// is; null if there are none. Members of one group share the text.
using SkippedWith = std::shared_ptr<const std::string>;
inline bool areSame(const SkippedWith &a, const SkippedWith &b) {
  return a == b || (a && b && *a == *b);
}

struct ParameterSemantics {
  ParameterOp op;
  /// The number of elements that a rank holds. Intervals are of these elements.
  int64_t elements = 0;
  /// The axes over which gradients arrive as addends.
  AxisSet arrivesOver = 0;
  /// The axes over which a logical step says that they are summed already.
  AxisSet reducedOver = 0;
  /// The op that makes the new values, for diagnostics.
  mlir::Operation *writer = nullptr;
  /// normalize / prescaled: the factor of one arriving gradient.
  Expr normalization = nullptr;
  /// The factor that a gradient arrives with. Null in a program of which no
  /// checkpoint has sums of gradients: there nothing reads it.
  Expr prescaled = nullptr;
  /// The type in which gradients are kept.
  Precision kept;
  /// The narrowest type in which elements went to other ranks before a sum over
  /// them was taken, such as the squares of a norm.
  Precision summedReduceDtype;
  mlir::Type arrival;
  SkippedWith skippedWith;
  /// The type of each role in memory and in checkpoints.
  llvm::MapVector<mlir::StringAttr, mlir::Type> types;
  std::vector<IntervalSemantics> intervals;
};

/// One of the situations in which an outcome decides.
struct Situation {
  bool nonfinite = false;
  bool missing = false;
  bool unequal = false;
  bool noTokens = false;
  /// Where gradients are missing: the sum of their numbers is below 0, as it
  /// may be where ranks pass different inputs.
  bool belowZero = false;
};
inline constexpr int kNumSituations = 16;
/// The outcome in each situation.
using Outcomes = std::array<double, kNumSituations>;
Situation getSituation(int index);
std::string describe(Situation situation);
std::string describeOutcome(double outcome);

/// A scalar that the caller passes to apply.
struct InputSemantics {
  /// The axes over which each rank passes an addend of its own.
  AxisSet over = 0;
  bool isTokens = false;
  /// Whether a step in which it is not positive is refused.
  bool isPositive = false;

  bool operator==(const InputSemantics &other) const {
    return over == other.over && isTokens == other.isTokens &&
           isPositive == other.isPositive;
  }
};

/// The effects of a step.
struct StepSemantics {
  mlir::Operation *step = nullptr;
  MeshAxes axes;
  llvm::MapVector<mlir::StringAttr, ParameterSemantics> parameters;
  /// What pipeline stages send, in the order of the numbers that callers know.
  llvm::SmallVector<ActivationOp> activations;
  llvm::SmallVector<std::pair<std::string, Number>> counters;
  /// Of counters that a step may leave as they are.
  std::map<std::string, SkippedWith> countersSkippedWith;
  llvm::SmallVector<std::pair<std::string, Number>> results;
  /// The results of a skipped step, and those of a refused one, whose number of
  /// tokens is any number.
  llvm::SmallVector<std::pair<std::string, Number>> skippedResults;
  llvm::SmallVector<std::pair<std::string, Number>> refusedResults;
  /// The new counters of the loss scale and of schedules if the step is
  /// skipped.
  llvm::SmallVector<std::pair<std::string, Number>> skipped;
  /// The name of the loss scale that gradients arrive with; empty: none.
  std::string lossScale;
  /// Counters before the first step.
  llvm::SmallVector<std::pair<std::string, Number>> initials;
  /// The outcome in each situation.
  Outcomes outcomes = {};
  /// Of the numbers that the outcome depends on.
  Roundings decidedBy;
  /// An operation on the way of the outcome that may round; null: none.
  mlir::Operation *rounding = nullptr;
  /// Scalars that the caller passes to apply.
  llvm::SmallVector<InputSemantics> inputs;
  /// Whether a checkpoint may be saved between two backward passes.
  bool isResumable = false;
  /// The axes over which ranks have batches of their own, where that is known.
  /// Only a step that is resumable needs them.
  std::optional<AxisSet> batches;
  /// Whether a step has one backward pass. Otherwise it has any number.
  bool oneBackward = false;
  /// Whether gradients are divided by the number of tokens.
  bool dividesByTokens = false;
  /// Whether ranks may make different numbers of backward passes. See
  /// StepOp::takesUnequalBackwards.
  bool takesUnequal = false;
  /// The axes over which ranks wait for each other in each backward pass. Ranks
  /// that differ over them and have unequal numbers of backward passes hang.
  /// Other ranks with unequal numbers are refused.
  AxisSet meetsOver = 0;
  /// Whether ranks wait for each other in a backward pass that is begun with
  /// the hint that it is the last.
  bool takesHints = false;
  bool hasUnits = false; // parameters are gathered when the caller unshards
  /// As |meetsOver|, for ranks of the same pipeline stages.
  llvm::SmallVector<std::pair<llvm::ArrayRef<AxisCoordinate>, AxisSet>>
      meetsOnStages;

  /// Records that ranks on |stages| (empty: all) meet over |set|.
  void addMeeting(llvm::ArrayRef<AxisCoordinate> stages, AxisSet set);
  /// The axes over which ranks on |stages| meet.
  AxisSet getMeetings(llvm::ArrayRef<AxisCoordinate> stages) const;
  int64_t getNumRanks() const { return axes.getNumRanks(axes.getAll()); }
  /// Whether all ranks meet in each backward pass.
  bool allMeet() const { return meetsOver == axes.getAll(); }
};

/// Whether the calls of a step can lead to |situation|.
bool mayHappen(Situation situation, const StepSemantics &semantics);
/// Whether they can lead to one in which the step is skipped.
bool maySkip(const StepSemantics &semantics);

/// Counts errors, so that one run reports all of them.
class Report {
public:
  mlir::InFlightDiagnostic error(mlir::Operation *op) {
    ++errors;
    return op->emitError();
  }
  /// For a message whose subject is |op|: begins with its name, as the errors
  /// of verifiers do.
  mlir::InFlightDiagnostic opError(mlir::Operation *op) {
    ++errors;
    return op->emitOpError();
  }
  /// Adds |example| to a diagnostic, if there is one.
  static void attach(mlir::InFlightDiagnostic &diagnostic, mlir::Location loc,
                     const std::string &example) {
    if (!example.empty())
      diagnostic.attachNote(loc) << example;
  }
  /// A message that is emitted by emitConsequences().
  class Consequence {
  public:
    Consequence(Report &report, mlir::Operation *op) : report(report), op(op) {}
    ~Consequence() {
      report.consequences.push_back({op, std::move(text), std::move(example)});
    }
    template <typename T> Consequence &operator<<(const T &part) {
      llvm::raw_string_ostream(text) << part;
      return *this;
    }

    void attach(std::string numbers) { example = std::move(numbers); }

  private:
    Report &report;
    mlir::Operation *op;
    std::string text, example;
  };
  /// An error whose cause may be reported before it, although it is found
  /// later: a wrong norm makes a wrong outcome.
  Consequence consequence(mlir::Operation *op) {
    ++errors;
    return Consequence(*this, op);
  }
  /// An error that is emitted by emitLast() if nothing else is wrong. Only the
  /// first one is.
  void addLast(mlir::Operation *op, std::string text) {
    if (!last)
      last = {op, std::move(text)};
  }
  void emitLast() {
    if (last && errors == 0)
      error(last->first) << last->second;
    last.reset();
  }
  void emitConsequences() {
    for (auto &[op, text, example] : consequences) {
      mlir::InFlightDiagnostic diagnostic = op->emitError() << text;
      attach(diagnostic, op->getLoc(), example);
    }
    consequences.clear();
  }
  bool hasOnlyConsequences() const {
    return errors > 0 && errors == consequences.size();
  }
  /// For an error that was emitted elsewhere.
  void count() { ++errors; }
  /// Begins to count anew.
  void reset() {
    errors = 0;
    consequences.clear();
    last.reset();
  }
  bool hasErrors() const { return errors > 0; }
  unsigned getNumErrors() const { return errors; }

private:
  unsigned errors = 0;
  std::vector<std::tuple<mlir::Operation *, std::string, std::string>>
      consequences;
  std::optional<std::pair<mlir::Operation *, std::string>> last;
};

/// A clip coefficient, and the parameters whose norm it depends on.
struct Clipping {
  bool isClipping = false;
  llvm::StringSet<> counted; // each element once
  llvm::StringSet<> miscounted;
};

/// The shared data of one proof.
struct Proof {
  Algebra algebra;
  /// Whether steps are compared with a reference, which defines the updates.
  bool hasReference = false;
  Report report;
  /// The facts of state by which numbers were shown to be equal, in words. A
  /// caller that writes state must not break them.
  std::set<std::string> assumed;
  /// Clippings by factor. All gradients of a step have the same factor.
  llvm::DenseMap<Expr, Clipping> clippings;
  /// The gradients in a number, except those in norms.
  llvm::DenseMap<Expr, llvm::SmallVector<BaseRef, 2>> gradients;
  /// Outcomes by expression, number of ranks, whether ranks wait in the loop,
  /// and whether tokens count. All paths to apply have the same outcomes.
  std::map<std::tuple<Expr, int64_t, bool, bool>, Outcomes> outcomes;
};

/// Reads the step of |module|, at any phase. Violations are reported on the
/// way. Returns nothing if the step cannot be read.
std::optional<StepSemantics> readSemantics(Proof &proof, mlir::ModuleOp module);

/// One step of |module| in the zero dialect, or a scheduled one.
std::optional<StepSemantics> readStep(Proof &proof, StepOp step);
std::optional<StepSemantics> readProgram(Proof &proof, zrt::ProgramOp program);

/// Reports violations of the obligations of every step that need the whole
/// |semantics|.
void checkSemantics(Proof &proof, const StepSemantics &semantics);
/// Of these, violations in results such as norms.
void checkResults(Proof &proof, const StepSemantics &semantics);

/// Reports differences of |second| from |first|.
void compareSemantics(Proof &proof, const StepSemantics &first,
                      const StepSemantics &second);
/// Reports norms of |second| that differ from those of |first|, if that is the
/// only difference of an element.
void compareNorms(Proof &proof, const StepSemantics &first,
                  const StepSemantics &second);
/// Reports what the caller of a step sees of a parameter and is different.
void compareContract(Proof &proof, const StepSemantics &first,
                     const StepSemantics &second, const ParameterSemantics &a,
                     const ParameterSemantics &b);
/// Leaves in |semantics| the roundings of both. The two are equal over the
/// reals.
void joinRoundings(StepSemantics &semantics, const StepSemantics &other);
/// Makes reduce dtypes of |semantics| as narrow as those of |other|, which is
/// the same step after another number of backward passes. Reason: where one
/// backward pass makes a sum, it may travel as it arrived, and rounds nothing.
void joinReduceDtypes(StepSemantics &semantics, const StepSemantics &other);
void compareActivations(Proof &proof, const StepSemantics &first,
                        const StepSemantics &second);

//===----------------------------------------------------------------------===//
// Functions that readers share
//===----------------------------------------------------------------------===//

/// Reads the axes of |mesh|, which may be null. Reports a mesh that the proof
/// does not support.
bool readMesh(Proof &proof, mlir::Operation *step, MeshOp mesh,
              StepSemantics &semantics);

/// The value of a monomial in a step on |mesh|. |tokens| and |lossScale| may
/// replace the symbols.
Expr getMonomial(Algebra &algebra, MeshOp mesh,
                 llvm::ArrayRef<ScaleFactor> factors, Expr tokens = nullptr,
                 Expr lossScale = nullptr);

/// The number that a rank passes as input |index|.
Expr getInput(Algebra &algebra, size_t index, const InputSemantics &input);

/// The number of gradients that did not arrive on this rank.
Expr getMissing(Algebra &algebra, const MeshAxes &axes);

/// The number of backward passes in which a gradient of |parameter| arrived on
/// this rank. 0 or more.
Expr getDelivered(Algebra &algebra, llvm::StringRef parameter,
                  const MeshAxes &axes);

/// The sum of a number over the ranks of |set|. Over the axes |stages| not all
/// ranks take part, so the sum of a replicated number is unknown there.
Expr sumOverRanks(Algebra &algebra, Expr a, const MeshAxes &axes, AxisSet set,
                  AxisSet stages = 0);
/// The same, summed in the type of |sumType|. If |a| is a gradient that is not
/// yet summed over any axis of |arrivesOver|, its last conversion was one to
/// the reduce dtype.
Number sumOverRanks(Algebra &algebra, Number a, AxisSet arrivesOver,
                    Precision sumType, const MeshAxes &axes, AxisSet set,
                    AxisSet stages = 0);

/// |a| on the first rank over |set|, 0 on the other ranks.
Expr countReplicatedOnce(Algebra &algebra, Expr a, AxisSet set);

/// Reads the outcome in each situation. Reports an outcome that depends on
/// numbers of one rank alone or on arithmetic that rounds, and elements that
/// are not tested.
void readOutcome(Proof &proof, mlir::Operation *op, const Number &number,
                 StepSemantics &semantics);

/// Whether |base| is a number of tokens.
bool isTokens(BaseRef base);

/// The outcome in each situation; nothing, and a report, where it is not one
/// number.
std::optional<Outcomes> decideOutcome(Proof &proof, mlir::Operation *op,
                                      Expr outcome,
                                      const StepSemantics &semantics);

/// Describes a part of |a| that is never written, or that only one rank has.
/// Empty if there is none.
std::string describeUnknown(Expr a);

/// The outcome, computed by arith from the operands of zero.outcome.
Expr getOutcome(Algebra &algebra, OutcomeOp op,
                llvm::function_ref<Expr(mlir::Value)> getOperand);

/// |result| if gradients can be divided by |number|: it is positive and has an
/// inverse. Else |instead|. Computed as arith does.
Expr replaceUnlessDivisor(Algebra &algebra, Expr number, Expr instead,
                          Expr result);

/// The narrowest type of the gradient in |addend|, an element of a sum, unless
/// gradients are |kept| in this type.
Precision getAddendType(const Number &addend, Precision kept);

/// |sum| over elements with |roundings|, taken in f64. The sum is a source of
/// its own. Its expression tells whether gradients were narrow: see
/// sumOverElements().
Number makeSum(Algebra &algebra, Expr sum, Roundings roundings);

/// A sum over the elements of a parameter, term by term. Each rank has elements
/// of its own over the axes |over|. |computedIn| is the narrowest type of the
/// addends, in which they are taken if |isTakenThere|, and not only the
/// gradients that they are made of.
Expr sumOverElements(Algebra &algebra, Expr element, llvm::StringRef parameter,
                     AxisSet over, Precision computedIn = {},
                     bool isTakenThere = false);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_STEPSEMANTICS_H
