//===- PlacedOps.td - Values move between memories ---------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PLACED_OPS_TD
#define ZERO_PLACED_OPS_TD

include "dialect/zero/ShardedOps.td"

def Zero_MemorySpaceAttr : I32EnumAttr<"MemorySpace",
    "the memory that a value is in", [
      I32EnumAttrCase<"device", 0>, I32EnumAttrCase<"host", 1>]> {
  let cppNamespace = "::zero";
}

def Zero_TransferOp : Zero_InferredOp<"transfer", [Pure]> {
  let summary = "Moves a value between the memories of device and host";
  let description = [{
    Each rank moves the part of the value that it holds. So a value is partitioned first and
    moved second. Placement, scale and bits do not change.

    Equivalent to: `cudaMemcpyAsync`.

    Constraints:

    - `transfer_c1`: the operand is in the other space;
    - `transfer_c2`: the operand is not a scalar. Reason: host and device both read scalars.

    Example:

    ```mlir
    %h = zero.transfer %g to host : !zero.value<64xf32, sharded = [dp]>
    ```
  }];
  let arguments = (ins Zero_Value:$input, Zero_MemorySpaceAttr:$space);
  let results = (outs Zero_Value:$output);
  let assemblyFormat = "$input `to` $space attr-dict `:` type($input)";
}

#endif // ZERO_PLACED_OPS_TD
