//===- CounterInterface.td - What lives across steps -------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_COUNTER_INTERFACE_TD
#define ZERO_COUNTER_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Zero_CounterRule : OpInterface<"CounterRule"> {
  let description = [{
    Counters that live across steps, and the rule that makes those of the next step
    from an i1, whether this one is skipped, and those of this step. All are f64.
  }];
  let cppNamespace = "::zero";
  let methods = [
    InterfaceMethod<"The names of the counters.",
                    "::mlir::ArrayAttr", "getCounterNames">,
    InterfaceMethod<"What counters are before the first step.",
                    "::llvm::ArrayRef<double>", "getCounterInitial">,
    InterfaceMethod<"The body of the rule.", "::mlir::Block &", "getRule">
  ];
}

#endif // ZERO_COUNTER_INTERFACE_TD
