//===- CounterInterface.td - Counters across steps --------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_COUNTER_INTERFACE_TD
#define ZERO_COUNTER_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Zero_CounterRule : OpInterface<"CounterRule"> {
  let description = [{
    Counters that live across steps, and a rule. The rule takes an i1 (whether this step
    is skipped) and the counters of this step. It yields the counters of the next step.
    Counters are f64.
  }];
  let cppNamespace = "::zero";
  let methods = [
    InterfaceMethod<"The names of the counters.",
                    "::mlir::ArrayAttr", "getCounterNames">,
    InterfaceMethod<"The values of the counters before the first step.",
                    "::llvm::ArrayRef<double>", "getCounterInitial">,
    InterfaceMethod<"The body of the rule.", "::mlir::Block &", "getRule">
  ];
}

#endif // ZERO_COUNTER_INTERFACE_TD
