//===- Mutations.h - Ways to damage a step ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_MUTANTS_ENGINE_MUTATIONS_H
#define ZERO_TEST_MUTANTS_ENGINE_MUTATIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace zero::test {

/// All ops of a module, in the order of a walk: the same in every clone.
using Ops = std::vector<mlir::Operation *>;
Ops getOps(mlir::ModuleOp module);

/// One change of one op.
struct Mutation {
  std::string kind; // e.g. "zrt.launch own: clear"
  unsigned op;      // its index in Ops
  std::function<void(const Ops &)> apply;
};

/// Every change that these operators can make of the records, waits and streams
/// of the scheduled step in |module|.
void addScheduleMutations(mlir::ModuleOp module,
                          std::vector<Mutation> &mutations);

/// Every change that these operators can make of the step in |module|:
/// whole ops (OpMutations.cpp) ...
void addOpMutations(mlir::ModuleOp module, std::vector<Mutation> &mutations);
/// ... numbers that are the same but where something is 0, or large
/// (NumberMutations.cpp) ...
void addNumberMutations(mlir::ModuleOp module,
                        std::vector<Mutation> &mutations);
/// ... numbers that are rounded, and comparisons with a bound
/// (RoundingMutations.cpp) ...
void addRoundingMutations(mlir::ModuleOp module,
                          std::vector<Mutation> &mutations);
/// ... numbers that depend on the outcome (OutcomeMutations.cpp) ...
void addOutcomeMutations(mlir::ModuleOp module,
                         std::vector<Mutation> &mutations);
/// ... and attributes and types (AttributeMutations.cpp).
void addAttributeMutations(mlir::ModuleOp module,
                           std::vector<Mutation> &mutations);

} // namespace zero::test

#endif // ZERO_TEST_MUTANTS_ENGINE_MUTATIONS_H
