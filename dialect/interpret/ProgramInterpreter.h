//===- ProgramInterpreter.h - Runs a zrt.program ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_PROGRAMINTERPRETER_H
#define ZERO_DIALECT_INTERPRET_PROGRAMINTERPRETER_H

#include "dialect/interpret/Actions.h"
#include "dialect/interpret/Program.h"
#include "dialect/interpret/Ranks.h"
#include "dialect/interpret/Window.h"

namespace zero {

/// The scheduled phase. A rank runs a list of calls in a step. Each rank runs
/// alone up to its next collective, where all ranks must meet.
class ProgramInterpreter : public Interpreter {
public:
  ProgramInterpreter(zrt::ProgramOp op, Arithmetic arithmetic);
  ~ProgramInterpreter() override;

  mlir::LogicalResult initialize();

  int64_t getNumRanks() override { return ranks.size(); }
  mlir::LogicalResult bindParameter(llvm::StringRef name,
                                    llvm::ArrayRef<double> full) override;
  mlir::FailureOr<StepResult>
  apply(llvm::ArrayRef<RankInputs> perRank) override;
  mlir::LogicalResult discard(llvm::ArrayRef<RankInputs> perRank) override;
  double getLossScale() override;
  void setOrder(uint64_t seed) override;
  std::vector<Number> getParameter(int64_t rank, llvm::StringRef name) override;
  std::vector<Number> getState(llvm::StringRef role,
                               llvm::StringRef name) override;

private:
  using Parameter = PlacedParameter;
  /// The state of a rank.
  struct RankState {
    std::string protocol;
    int64_t backward = -1;            // the backward pass that was opened last
    llvm::StringMap<int64_t> arrived; // in this backward pass
    /// The backward passes of this step in which a gradient arrived.
    llvm::StringMap<int64_t> delivered;
    int64_t missing = 0;
    Outcome outcome = Outcome::applied;
    bool committed = false;
    std::vector<Number> results; // when the step was committed
  };
  using Actions = std::vector<Action>;

  mlir::LogicalResult initializeParameters();
  void initializeProtocol();
  void initializePlaces();

  // The protocol (ProgramInterpreter.cpp).

  mlir::LogicalResult openWindow(llvm::ArrayRef<RankInputs> perRank);
  /// Plans the calls of |rank| from its first backward pass up to |end|.
  mlir::LogicalResult plan(int64_t rank, zrt::Event end);
  mlir::LogicalResult planBackward(int64_t rank, int64_t backward);
  mlir::LogicalResult planSequence(int64_t rank, int64_t backward,
                                   zrt::TransitionOp arrive);
  mlir::LogicalResult planArrival(int64_t rank, int64_t backward,
                                  const Parameter &parameter);
  /// Plans the handlers of |event| and moves |rank| to its next state.
  mlir::LogicalResult planEvent(int64_t rank, zrt::Event event,
                                const Parameter *arriving = nullptr);
  void planHandler(int64_t rank, mlir::FlatSymbolRefAttr handler,
                   const Parameter *arriving = nullptr,
                   zrt::UnitTableOp unit = nullptr);
  bool isLent(const Parameter &parameter);
  int64_t getNumPieces(int64_t backward, const Parameter &parameter);
  bool closes(int64_t rank, mlir::FlatSymbolRefAttr bucket);
  // Units of parameters that ranks shard (ProgramUnits.cpp).

  /// Finds in which orders callers use units. They number them as they are
  /// declared.
  mlir::LogicalResult initializeUnits();
  /// Whether a rank uses both.
  bool meetOnRank(zrt::UnitTableOp a, zrt::UnitTableOp b);
  /// Plans a pass, in which the caller reads each unit.
  mlir::LogicalResult planUnits(int64_t rank, bool isBackward);
  /// Plans that |unit| is unsharded, unless it is, and that the caller reads
  /// it. Null: no unit.
  mlir::LogicalResult planUse(int64_t rank, zrt::UnitTableOp unit);
  /// Plans that |unit| is unsharded ahead of its use. Beside units that are no
  /// neighbours, its memory must be free.
  mlir::LogicalResult planPrefetch(int64_t rank, zrt::UnitTableOp unit);
  mlir::LogicalResult planReshard(int64_t rank, zrt::UnitTableOp unit);
  void planRead(int64_t rank, zrt::UnitTableOp unit);
  mlir::LogicalResult planUnit(int64_t rank, zrt::UnitTableOp unit,
                               zrt::Event event);
  bool shareMemory(zrt::UnitTableOp a, zrt::UnitTableOp b);
  /// Whether |rank| unshards |unit|. In program order all ranks go through the
  /// handlers together, and calls choose their ranks.
  bool uses(int64_t rank, zrt::UnitTableOp unit);
  /// The unit of |bucket| that has sharded parameters, or null.
  zrt::UnitTableOp getUnit(mlir::FlatSymbolRefAttr bucket);
  /// Compares what the caller reads with the slices of the ranks.
  void readUnit(int64_t rank, zrt::UnitTableOp unit);
  /// Gives frozen parameters numbers that differ from one element to the next.
  void fillFrozen();
  /// The row of |parameters| of which |rank| has one of |slices|.
  Array joinSlices(int64_t rank, mlir::FlatSymbolRefAttr parameters,
                   const PerRank &slices);
  /// Keeps what the caller must read if |action|, of the handlers of a unit,
  /// gathers it. In an order of streams the caller may read it when the next
  /// update has changed the slices.
  void keepGathered(const Action &action, llvm::ArrayRef<int64_t> group);
  /// |array|, of parameters of |unit|, as it is when it has traveled.
  Array travel(zrt::UnitTableOp unit, const Array &array);

  void planLend(int64_t rank, int64_t backward, const Parameter &parameter);
  void add(int64_t rank, Action::Kind kind, const Parameter *parameter) {
    plans[rank].push_back({kind, nullptr, {}, parameter});
  }
  void note(int64_t rank, std::function<void()> what,
            Action::Kind kind = Action::Kind::note) {
    plans[rank].push_back({kind, nullptr, std::move(what), nullptr});
  }
  /// An order of streams also chooses when gradients arrive (as soon as a
  /// bucket is open, or right before it is closed), whether the caller writes
  /// them to views, and whether the caller reads parameters. Eight consecutive
  /// seeds have all combinations.
  bool arrivesEarly() const { return seed > 0 && ((seed - 1) & 1); }
  bool usesViews() const { return seed > 0 && ((seed - 1) & 2); }
  bool readsParameters() const { return seed > 0 && !((seed - 1) & 4); }
  void closeBackward(int64_t rank);
  /// Whether ranks meet in backward passes, and have unequal numbers of them. A
  /// rank would then wait for ever, or meet another rank in another backward
  /// pass.
  bool isStuck() { return !window->isEqual() && meetsInBackwards; }
  mlir::LogicalResult runPlans();
  mlir::LogicalResult runSideBySide();
  class StreamOrder;
  static bool isSameCollective(mlir::Operation *a, mlir::Operation *b);
  mlir::FailureOr<StepResult> collectResult();

  // One call of one rank, or of all ranks (ProgramCalls.cpp).

  /// Runs a call that is no collective. A call that touches other memory than
  /// it declares is an error.
  mlir::LogicalResult run(const Action &action, int64_t rank);
  mlir::LogicalResult checkTouches(mlir::Operation *call,
                                   const Parameter *arriving = nullptr);
  /// Runs a collective of the ranks of |group|.
  mlir::LogicalResult runCollective(mlir::Operation *call,
                                    llvm::ArrayRef<int64_t> group);
  /// The ranks that run a call: one, or the group of a collective.
  struct Turn {
    llvm::ArrayRef<int64_t> ranks;
    const Parameter *arriving = nullptr;
    int64_t rank() const { return ranks.front(); }
  };
  /// Runs |op|. There is one function for each call.
  template <typename OpT>
  mlir::LogicalResult runOp(OpT op, const Turn &turn) = delete;
  mlir::LogicalResult runUnchecked(zrt::RuntimeCall call, const Turn &turn);
  bool isFirstOver(int64_t rank, mlir::ArrayAttr axes);
  mlir::LogicalResult reduceScatter(mlir::Operation *call,
                                    const zrt::Exchange &exchange,
                                    llvm::ArrayRef<int64_t> group);
  mlir::LogicalResult requireAllocated(mlir::Operation *call,
                                       mlir::FlatSymbolRefAttr buffer,
                                       llvm::ArrayRef<int64_t> ranks);
  /// Whether |rank| is on a pipeline stage that |op|, a call or the table of a
  /// unit, works on.
  bool isOn(mlir::Operation *op, int64_t rank) {
    ValueType type = places.lookup(op);
    return !type || ranks.isOn(type, rank);
  }
  /// The ranks that meet in a collective over |axes|.
  std::vector<std::vector<int64_t>> getGroups(mlir::Operation *call,
                                              mlir::ArrayAttr axes) {
    llvm::SmallVector<mlir::StringAttr> names(
        axes.getAsRange<mlir::StringAttr>());
    ValueType type = places.lookup(call);
    return type ? ranks.getGroups(names, type) : ranks.getGroups(names);
  }
  /// The ranks that run |call| together with |rank|: its group of a collective,
  /// or |rank| alone. None if |rank| is not on the call's pipeline stage.
  std::vector<int64_t> getGroupOf(mlir::Operation *call, int64_t rank);
  /// The sum of |buffer| over the ranks of |group|, taken in |format|.
  Array sumOverGroup(mlir::FlatSymbolRefAttr buffer, const Format &format,
                     llvm::ArrayRef<int64_t> group);

  Program program;
  Calculator calculator;
  Ranks ranks;
  std::vector<Parameter> parameters; // in order of declaration
  llvm::StringMap<size_t> indices;
  std::vector<ExpectedGradient> expected;
  llvm::StringMap<zrt::TransitionOp> transitions; // by "state/event"
  /// Of calls that do not run on all ranks: the types of their buffers. Of
  /// units that are not on all ranks: those of their parameters.
  llvm::DenseMap<mlir::Operation *, ValueType> places;
  /// Units as a pass uses them, and how many are gathered ahead.
  struct UnitOrder {
    llvm::SmallVector<zrt::UnitTableOp> units;
    size_t prefetch = 0;
  };
  /// By table of a unit: the table whose handlers run for its number.
  llvm::DenseMap<mlir::Operation *, zrt::UnitTableOp> numbered;
  /// Units as a forward pass and a backward pass use them.
  UnitOrder forward, backward;
  bool declaresOrder = false; // else callers may begin with any unit
  /// Units of which one is gathered ahead while the other is in use.
  llvm::DenseSet<std::pair<mlir::Operation *, mlir::Operation *>> neighbours;

  // The step that is running.
  std::optional<Window> window;
  std::vector<RankState> states;
  std::vector<Actions> plans; // by rank
  /// By rank: the units that are unsharded at the end of the plan so far.
  std::vector<llvm::SmallVector<zrt::UnitTableOp, 2>> unsharded;
  /// What callers must read of a sharded bucket.
  struct Gathered {
    PerRank slices; // that ranks have read
    PerRank rows;   // that they have gathered
    /// The memories to which slices went.
    llvm::SmallDenseSet<mlir::Attribute, 4> passed;
  };
  llvm::DenseMap<mlir::Attribute, Gathered> gathered;
  uint64_t seed = 0; // of the order of streams; 0: program order
  std::unique_ptr<StreamOrder> order;
  bool hasFailed = false; // while the caller read
  /// Whether ranks meet when a backward pass that may not be the last is
  /// closed.
  bool meetsInBackwards = false;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_PROGRAMINTERPRETER_H
