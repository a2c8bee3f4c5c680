//===- Window.h - The backward passes since the last apply ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_INTERPRET_WINDOW_H
#define ZERO_DIALECT_INTERPRET_WINDOW_H

#include "dialect/interpret/Interpreter.h"

namespace zero {

/// A gradient that every backward pass must deliver.
struct ExpectedGradient {
  std::string name;
  int64_t elements = 0;
  bool optional = false;
  std::vector<bool> arrivesOn; // by rank
};

/// The inputs of all ranks in one step, and the missing gradients.
class Window {
public:
  /// Checks |inputs| against the gradients and inputs of |op|. Emits an error
  /// at |op|.
  static mlir::FailureOr<Window>
  create(mlir::Operation *op, int64_t numRanks, int64_t numInputs,
         llvm::ArrayRef<ExpectedGradient> expected,
         llvm::ArrayRef<RankInputs> inputs);

  int64_t getBackwards(int64_t rank) const {
    return inputs[rank].backwards.size();
  }
  bool closesLast(int64_t rank) const { return inputs[rank].closesLast; }
  bool measures(int64_t rank) const { return inputs[rank].measures; }
  bool isBegunAsLast(int64_t rank, int64_t backward) const {
    return inputs[rank].begunAsLast.count(backward) > 0;
  }
  /// The largest number of backward passes of a rank.
  int64_t getLargestBackwards() const;
  /// The sum over the ranks.
  int64_t getTotalBackwards() const;
  bool isEqual() const;
  /// The number of gradients that are not optional and did not arrive, over all
  /// backward passes, with what a rank adds for inputs that differ.
  int64_t getMissing(int64_t rank) const {
    return missing[rank] + getDifference(rank);
  }
  /// What the rank adds to its number of missing gradients so that the sum over
  /// the ranks is not 0 if their inputs differ. It may be below 0.
  int64_t getDifference(int64_t rank) const { return -int64_t(differs[rank]); }
  /// Whether a gradient is missing, or inputs differ.
  bool isAnyMissing() const;

  /// The number of backward passes in which a gradient arrived.
  int64_t getDelivered(int64_t rank, llvm::StringRef name) const;

  /// A gradient, or null if it never arrived.
  const std::vector<double> *find(int64_t rank, int64_t backward,
                                  llvm::StringRef name) const;
  llvm::ArrayRef<double> getInputs(int64_t rank) const {
    return inputs[rank].inputs;
  }

  /// The reason why a step with this outcome is refused; empty if it is not
  /// refused. |tokens| is the index of the input that counts tokens, or -1.
  std::string describe(Outcome outcome, int64_t tokens = -1) const;

private:
  llvm::ArrayRef<ExpectedGradient> expected;
  llvm::ArrayRef<RankInputs> inputs;
  std::vector<int64_t> missing;
  std::vector<bool> differs; // from the inputs of rank 0
};

} // namespace zero

#endif // ZERO_DIALECT_INTERPRET_WINDOW_H
