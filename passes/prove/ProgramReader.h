//===- ProgramReader.h - The semantics of a scheduled step ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks the protocol's automaton. In each state, memory must be one function of
// the gradients so far, however often the program passed the state. This is the
// induction over the number of backward passes. The semantics of all paths to
// apply must be equal.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_PROGRAMREADER_H
#define ZERO_PASSES_PROVE_PROGRAMREADER_H

#include "passes/prove/Calls.h"
#include "passes/prove/Gradient.h"
#include "passes/prove/IdleState.h"

#include "llvm/ADT/SetVector.h"

namespace zero::prove {

/// A collective: its name and the attributes that its op declares.
struct Collective {
  llvm::StringRef name;
  llvm::SmallVector<mlir::NamedAttribute, 4> attributes;
  AxisSet axes = 0;                      // that have several ranks
  llvm::ArrayRef<AxisCoordinate> stages; // of the ranks; empty: all

  bool operator==(const Collective &other) const {
    return name == other.name && attributes == other.attributes;
  }
  /// Whether ranks that meet take it for |other|: they tell each other the
  /// operation and what they send, and not where the result goes.
  bool looksAs(const Collective &other) const {
    auto isSent = [](mlir::NamedAttribute attribute) {
      return !llvm::is_contained({"target", "stream", "axes"},
                                 attribute.getName().getValue());
    };
    return name == other.name && axes == other.axes &&
           llvm::equal(llvm::make_filter_range(attributes, isSent),
                       llvm::make_filter_range(other.attributes, isSent));
  }
};
using Collectives = llvm::SmallVector<Collective>;

/// A state of the protocol and the memory there.
struct Node {
  mlir::StringAttr state;
  bool isOpen = false;
  bool hasEarlier = false; // a backward pass was closed
  Memory memory;
  /// The collectives before apply that are not part of each backward pass, and
  /// the numbers that ranks sent in them. The begin of a backward pass clears
  /// both.
  Collectives met;
  std::vector<Expr> sent;

  /// Whether both nodes must have the same contents.
  bool isAt(const Node &other) const {
    return state == other.state && isOpen == other.isOpen &&
           hasEarlier == other.hasEarlier && memory.hasSameRoles(other.memory);
  }
};

/// What is left when a step was applied. Everything that the proof says of the
/// step follows from it.
struct EndOfStep {
  Memory memory;
  Number outcome;
  Conditions conditions;

  bool isSame(const EndOfStep &other) const;
};

/// A path from memory, with all backward passes closed, to the end of a step.
/// Paths of several states are the same path where they find the same memory.
struct EndingPath {
  Memory memory;
  std::vector<Expr> sent;
  bool isOpen;                                         // a backward pass is
  llvm::SmallVector<mlir::Attribute, 3> handlers = {}; // by transition
  // What became of it.
  bool looksAtOpen = false; // a call did
  std::vector<Expr> sentUntilEnd = {};
  std::vector<Expr> sentInApply = {};

  /// Whether all that was said of this path can be said of |other|.
  bool isSame(const EndingPath &other) const;
};

/// What ranks meet at on a path to apply, and what they send each other there.
struct Meetings {
  llvm::SmallVector<zrt::TransitionOp, 2> path;
  Collectives collectives;
  std::vector<Expr> sent;
};

/// When the apply of |path| happens: "in state 'first'".
std::string describe(llvm::ArrayRef<zrt::TransitionOp> path);

/// Reads one program, once.
class ProgramReader {
public:
  /// |isOnce|: the ends of steps are explored once for each state.
  ProgramReader(Proof &proof, zrt::ProgramOp program, bool isOnce)
      : proof(proof), algebra(proof.algebra), program(program), isOnce(isOnce),
        symbols(program) {}

  /// Nothing if an obligation is broken, which is reported.
  std::optional<StepSemantics> run();

private:
  bool initialize();
  void enter(Node node, mlir::Operation *from);
  /// Explores the transitions of |node| after which the step is over, or the
  /// others.
  void explore(const Node &node, bool endsStep);
  void explore(const Node &node, zrt::TransitionOp transition);
  void runHandler(mlir::FlatSymbolRefAttr symbol, Memory &memory);
  void runHandlers(zrt::TransitionOp transition, Memory &memory);
  void closeBackward(Memory &memory, bool isFirst);
  void closeAll(const Node &node, Memory &memory);
  bool isCommitted(zrt::TransitionOp transition);

  // The ends of steps (EndOfStep.cpp).

  void endStep(const Node &node, llvm::ArrayRef<zrt::TransitionOp> path,
               Memory &memory);
  void measure(const Node &node, llvm::ArrayRef<zrt::TransitionOp> path,
               Memory &memory);
  /// Looks at the apply that |path| made: at once, or after measure.
  void apply(const Node &node, llvm::ArrayRef<zrt::TransitionOp> path,
             Memory &memory);
  void checkEnd(llvm::ArrayRef<zrt::TransitionOp> path, EndOfStep end,
                mlir::Operation *committed);
  void discard(zrt::TransitionOp transition, Memory &memory);

  // The gradients of a backward pass (Receive.cpp).

  void receive(Node &node);
  void checkOwnGradients();
  void receiveInOrder(Node &node, zrt::TransitionOp transition);
  void receiveBucket(Node &node, zrt::TransitionOp transition,
                     mlir::FlatSymbolRefAttr bucket);

  // Checkpoints between two backward passes (Accumulators.cpp).

  mlir::StringAttr findResumable();
  void checkResumable();
  void keepResumable(Memory &memory);
  void checkAccumulators();
  void checkAccumulator(zrt::AccumulatorOp op, const Contents &contents);

  // Units of parameters that ranks shard (Units.cpp).

  void checkUnitMemory();
  void checkUnits(const Node &node);

  // Events and collectives of the protocol (Protocol.cpp).

  void requireEvents(const Node &node);
  void compareCollectives(const Node &node,
                          llvm::ArrayRef<zrt::TransitionOp> path);
  void checkHints();
  bool returns(zrt::TransitionOp transition);
  void compareMeetings(Meetings mine, std::optional<Meetings> &first,
                       llvm::StringRef who);
  Collectives getCollectives(zrt::TransitionOp transition);
  Collectives getCollectives(llvm::ArrayRef<zrt::TransitionOp> path);
  Collectives getMet(const Node &node, llvm::ArrayRef<zrt::TransitionOp> path);
  void findMeetings();
  bool isHinted(mlir::StringAttr state);
  void checkStages(zrt::TransitionOp op, const Collective &collective);

  zrt::TransitionOp getTransition(mlir::StringAttr state, zrt::Event event) {
    for (zrt::TransitionOp op : transitions)
      if (op.getStateAttr() == state && op.getEvent() == event)
        return op;
    return nullptr;
  }

  Proof &proof;
  Algebra &algebra;
  zrt::ProgramOp program;
  const bool isOnce;
  const mlir::SymbolTable symbols; // of the program
  MeshOp mesh;
  StepSemantics semantics;
  Buckets buckets;
  std::optional<Calls> calls;
  ClosedNumbers closed{algebra};
  llvm::SmallVector<zrt::TransitionOp> transitions;
  bool measures = false;    // some transition is on measure
  bool accumulates = false; // gradients are added to buffers as they arrive
  /// Where a checkpoint may be saved within a step; null: nowhere.
  mlir::StringAttr resumable;
  llvm::SmallVector<zrt::BucketTableOp> arrivals;
  std::optional<IdleState> idle;
  std::vector<Node> nodes;
  llvm::SetVector<size_t> pending; // of nodes
  llvm::SetVector<zrt::TransitionOp> meetsSometimes;
  /// Transitions that close a backward pass with a wrong hint that it is the
  /// last.
  llvm::SetVector<zrt::TransitionOp> closesHinted;
  std::optional<StepSemantics> applied;
  /// The ends that were found to be right. Most paths lead to few of them.
  std::vector<EndOfStep> ends;
  std::vector<EndingPath> runs; // that were found to be right
  mlir::SymbolTableCollection places;
  /// Of the first path, without the collectives that are part of each backward
  /// pass.
  std::optional<Meetings> firstApply;
  /// Of the first path from the state that is explored.
  std::optional<Meetings> firstFromState;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_PROGRAMREADER_H
