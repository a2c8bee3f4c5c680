//===- ProgramInterpreter.h - Runs a zrt.program ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_PROGRAMINTERPRETER_H
#define ZERO_DIALECT_INTERPRET_PROGRAMINTERPRETER_H

#include "dialect/interpret/Program.h"
#include "dialect/interpret/Ranks.h"
#include "dialect/interpret/Window.h"

namespace zero {

/// The scheduled phase. An event of the protocol runs its handlers on all ranks
/// side by side: each rank goes on alone up to its next collective, which is
/// where all ranks must meet.
class ProgramInterpreter : public Interpreter {
public:
  ProgramInterpreter(zrt::ProgramOp op, Arithmetic arithmetic)
      : program(op), calculator(arithmetic) {}

  mlir::LogicalResult initialize();

  int64_t getNumRanks() override { return ranks.size(); }
  mlir::LogicalResult bindParameter(llvm::StringRef name,
                                    llvm::ArrayRef<double> full) override;
  mlir::FailureOr<StepResult>
  apply(llvm::ArrayRef<RankInputs> perRank) override;
  mlir::LogicalResult discard(llvm::ArrayRef<RankInputs> perRank) override;
  double getLossScale() override;
  std::vector<Number> getParameter(int64_t rank, llvm::StringRef name) override;
  std::vector<Number> getState(llvm::StringRef role,
                               llvm::StringRef name) override;

private:
  /// A parameter, its place in a bucket and what arrivals do there.
  struct Parameter {
    ParameterOp op;
    BucketOp bucket;
    zrt::ArrivalsOp arrivals;
    Range range;
    int64_t padEnd = 0;
  };
  /// Where a rank stands.
  struct RankState {
    std::string protocol;
    int64_t backward = -1;            // the one opened last
    llvm::StringMap<int64_t> arrived; // in that one
    int64_t missing = 0;
    int verdict = 0;
    bool settled = false;
  };
  using Calls = std::vector<mlir::Operation *>;

  mlir::LogicalResult initializeParameters();
  void initializeProtocol();
  void initializePlaces();

  // The protocol (ProgramInterpreter.cpp).

  /// Runs |event| on |participants|, which move on to their next states.
  mlir::LogicalResult runEvent(zrt::Event event,
                               llvm::ArrayRef<int64_t> participants);
  mlir::LogicalResult runSideBySide(std::vector<Calls> calls);
  mlir::LogicalResult arrive(const Parameter &parameter,
                             llvm::ArrayRef<int64_t> participants);
  mlir::LogicalResult openWindow(llvm::ArrayRef<RankInputs> perRank);
  /// Whether a rank would wait for one that makes no such backward.
  bool isStuck();
  mlir::LogicalResult runBackwards();
  mlir::LogicalResult runBackward(int64_t backward);
  mlir::LogicalResult runSequence(mlir::FlatSymbolRefAttr sequence,
                                  llvm::ArrayRef<int64_t> participants);
  void closeBackward(int64_t rank);
  llvm::SmallVector<int64_t> getEveryone() {
    return llvm::to_vector(llvm::seq<int64_t>(0, ranks.size()));
  }
  bool communicatesBefore(zrt::Event event);
  mlir::FailureOr<StepResult> collectResult();

  // One call of one rank, or of all (ProgramCalls.cpp).

  mlir::LogicalResult run(mlir::Operation *call, int64_t rank);
  mlir::LogicalResult runCollective(mlir::Operation *call);
  mlir::LogicalResult launch(zrt::LaunchOp op, int64_t rank);
  mlir::LogicalResult pack(zrt::PackOp op, int64_t rank);
  void fillMissing(zrt::FillMissingOp op, int64_t rank);
  mlir::LogicalResult copy(zrt::CopyOp op, int64_t rank);
  mlir::LogicalResult reduceScatter(mlir::Operation *call,
                                    mlir::FlatSymbolRefAttr source,
                                    mlir::FlatSymbolRefAttr target,
                                    mlir::ArrayAttr axes, bool accumulate);
  mlir::LogicalResult allReduce(zrt::AllReduceOp op);
  mlir::LogicalResult allGather(zrt::AllGatherOp op);
  mlir::LogicalResult requireAllocated(mlir::Operation *call,
                                       mlir::FlatSymbolRefAttr buffer,
                                       int64_t rank);
  /// Whether |rank| is on a pipeline stage that |call| works on.
  bool isOn(mlir::Operation *call, int64_t rank) {
    ValueType type = places.lookup(call);
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
  /// What |group| has in |buffer|, summed in |format|.
  Array sumOverGroup(Buffer &buffer, const Format &format,
                     llvm::ArrayRef<int64_t> group);

  Program program;
  Calculator calculator;
  Ranks ranks;
  std::vector<Parameter> parameters; // in order of declaration
  llvm::StringMap<size_t> indices;
  std::vector<ExpectedGradient> expected;
  llvm::StringMap<zrt::TransitionOp> transitions; // by "state/event"
  /// What calls work on, where that is not on all ranks.
  llvm::DenseMap<mlir::Operation *, ValueType> places;

  // The step that is running.
  std::optional<Window> window;
  std::vector<RankState> states;
  const Parameter *arriving = nullptr;
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_PROGRAMINTERPRETER_H
