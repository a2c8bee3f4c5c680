//===- Passes.td - From values to buffers and handlers -----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LOWER_TD
#define ZERO_PASSES_LOWER_TD

include "mlir/Pass/PassBase.td"

def LowerToZrtPass : Pass<"zero-lower-to-zrt", "::mlir::ModuleOp"> {
  let summary = "Lowers a sharded step to buffers, kernels and handlers";
  let description = [{
    Buckets become buffers: gradients, slices of reduced gradients, parameters, master weights
    and optimizer state.

    Element-wise work becomes kernels. The factor, the update, and the cast and store of
    parameters are one pass over memory.

    Scalars become scalar slots and straight-line f64 programs. There is one program for each
    all-reduce of scalars that it has to wait for, and one before the first update. The reason
    is that on a GPU each program is a launch. A step of one rank has no all-reduce.

    The protocol decides when calls run. The first backward pass stores, and later ones add (at
    stage 2 they are reduced and added). When a second backward pass begins, the buffer that the
    first one wrote gets the role of the accumulator. So a step of one backward pass has no
    accumulator.

    *Requires:* the form that `zero-coalesce-scalars` leaves.

    *Guarantees:* the module has a `zrt.program` and no `zero.step`.
  }];
  let dependentDialects = ["::zero::ZeroDialect", "::zrt::ZrtDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def PromoteSlotsPass : Pass<"zrt-promote-slots", "::mlir::ModuleOp"> {
  let summary = "Keeps scalars that one program stores and loads out of memory";
  let description = [{
    A load of what the same scalar program stored before becomes the stored value. Stores
    to slots that nothing reads are removed, with what only they need and with the slots.
    So is a store before another one to the same slot.

    *Requires:* a program, as `zero-lower-to-zrt` leaves it.

    *Guarantees:* every slot is read by another scalar program, a kernel, a call, a result
    or the state. Slots that are read have the same values as before.
  }];
}

#endif // ZERO_PASSES_LOWER_TD
