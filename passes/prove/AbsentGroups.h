//===- AbsentGroups.h - Groups that may stay as they are --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_ABSENTGROUPS_H
#define ZERO_PASSES_PROVE_ABSENTGROUPS_H

#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// The number of gradients of |group| that arrived, over all backward passes
/// and ranks.
Expr getDeliveredTotal(Algebra &algebra, GroupOp group, const MeshAxes &axes);

/// The members of |group| if it has `absent skip`.
SkippedWith getSkippedWith(GroupOp group);

/// Notes the groups of |module| with `absent skip` in the parameters of
/// |semantics|.
void noteAbsentGroups(mlir::ModuleOp module, StepSemantics &semantics);

/// Checks that an applied program leaves a group with `absent skip` as it is
/// where none of its gradients arrived, and asks for nothing else. What remains
/// in |semantics| are the values where one arrived. |outcome|: that of the
/// step.
void checkAbsentGroups(Proof &proof, mlir::ModuleOp module, Expr outcome,
                       StepSemantics &semantics);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_ABSENTGROUPS_H
