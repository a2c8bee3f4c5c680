//===- ProgramOps.td - One op, one call of the runtime -----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names are those of zero_rt/calls.def, where each call is described.
//
//===----------------------------------------------------------------------===//

#ifndef ZRT_PROGRAM_OPS_TD
#define ZRT_PROGRAM_OPS_TD

include "dialect/zrt/TableOps.td"

/// Runs after its operands' timepoints.
class Zrt_CallOp<string mnemonic, dag extra = (ins), string format = "",
                 list<Trait> traits = []>
    : Zrt_Op<mnemonic, traits # [
        HasParent<"HandlerOp">, MemoryEffects<[MemRead, MemWrite]>,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let arguments = !con(extra, (ins Variadic<Zrt_TimepointType>:$awaits));
  let results = (outs Zrt_TimepointType:$done);
  let assemblyFormat = format # " `after` `(` $awaits `)` attr-dict";
}

def Zrt_AllocateOp : Zrt_CallOp<"allocate",
    (ins FlatSymbolRefAttr:$buffer), "$buffer"> {
  let summary = "Allocates an on-demand buffer";
  let description = [{
    Constraints:

    - `allocate_c1`: the buffer exists and is on demand.

    Example:

    ```mlir
    %t0 = zrt.allocate @b0.reduced after()
    ```
  }];
}

def Zrt_ReleaseOp : Zrt_CallOp<"release",
    (ins FlatSymbolRefAttr:$buffer), "$buffer"> {
  let summary = "Gives an on-demand buffer back";
  let description = [{
    Constraints:

    - `release_c1`: the buffer exists and is on demand.

    Example:

    ```mlir
    %t1 = zrt.release @b0.reduced after(%t0)
    ```
  }];
}

def Zrt_SetRoleOp : Zrt_CallOp<"set_role",
    (ins FlatSymbolRefAttr:$buffer, Zrt_RoleAttr:$role),
    "$buffer `as` custom<Role>($role)"> {
  let summary = "Changes what a buffer counts as; moves no byte";
  let description = [{
    The buffer that the first backward pass wrote becomes the accumulator when a second
    one begins.

    Constraints:

    - `set_role_c1`: the buffer exists and has memory of its own.

    Example:

    ```mlir
    %t0 = zrt.set_role @b0.gradient as accumulator after()
    ```
  }];
}

def Zrt_PackOp : Zrt_CallOp<"pack", (ins UnitAttr:$accumulate),
    "(`accumulate` $accumulate^)?"> {
  let summary = "Writes, or adds, the arriving gradient into its bucket";
  let description = [{
    Runs in an `arrive` handler. A further use of a parameter within one backward pass
    adds to the one before, whatever is said here.

    Example:

    ```mlir
    %t0 = zrt.pack accumulate after()
    ```
  }];
}

def Zrt_FillMissingOp : Zrt_CallOp<"fill_missing",
    (ins FlatSymbolRefAttr:$bucket), "$bucket"> {
  let summary = "Zeroes what did not arrive in this backward pass, pads included";
  let description = [{
    Constraints:

    - `fill_missing_c1`: the bucket has arrivals.

    Example:

    ```mlir
    %t0 = zrt.fill_missing @b0 after()
    ```
  }];
}

def Zrt_LaunchOp : Zrt_CallOp<"launch",
    (ins FlatSymbolRefAttr:$kernel, FlatSymbolRefArrayAttr:$buffers,
         FlatSymbolRefAttr:$segments, OptionalAttr<StrArrayAttr>:$own,
         OptionalAttr<FlatSymbolRefAttr>:$sum,
         DefaultValuedOptionalAttr<I64Attr, "0">:$sum_index,
         UnitAttr:$first_stage),
    "$kernel $buffers `over` $segments (`own` custom<NameList>($own)^)? (`sum` $sum^)? "
    "(`at` $sum_index^)? (`first_stage` $first_stage^)?"> {
  let summary = "Runs a kernel over the segments of a bucket";
  let description = [{
    With `own [dp]` over this rank's slice of a row only, where the row is divided
    over those axes. `sum` is the slot that receives the
    sum of a kernel that sums. Of buffers that are on several pipeline stages,
    `first_stage` has the first of them run it alone: what they hold alike counts
    once.

    Constraints:

    - `launch_c1`: kernel, buffers, segments and slot exist;
    - `launch_c2`: there is a buffer per operand of the kernel, of its type;
    - `launch_c3`: buffers have the same rows, which the segments fill;
    - `launch_c4`: buffers that are sharded are so over the axes of `own`;
    - `launch_c5`: a slot for the sum is given exactly where the kernel sums, over
      one segment;
    - `launch_c6`: scalars of the segments hold as many as the kernel takes;
    - `launch_c7`: buffers are in one space, where the kernel runs;
    - `launch_c8`: ranks of the axes of `own` have the same rows;
    - `launch_c9`: what the first stage runs alone writes no buffer.

    Example:

    ```mlir
    %t0 = zrt.launch @squares [@b0.reduced] over @b0.all own [dp] sum @norm at 0 after()
    ```
  }];
}

def Zrt_RunScalarsOp : Zrt_CallOp<"run_scalars",
    (ins FlatSymbolRefAttr:$program), "$program"> {
  let summary = "Runs a scalar program";
  let description = [{
    Constraints:

    - `run_scalars_c1`: the program exists.

    Example:

    ```mlir
    %t0 = zrt.run_scalars @half after()
    ```
  }];
}

def Zrt_CountArrivalsOp : Zrt_CallOp<"count_arrivals",
    (ins FlatSymbolRefAttr:$slots), "`to` $slots"> {
  let summary = "Writes the number of backward passes and of missing gradients";
  let description = [{
    To the second number a rank adds what it sent of activations less what it
    received, and the number of its inputs that updates depend on and that are not
    finite: the sum over all ranks is 0 if nothing is missing, nothing lost and
    every such input finite.

    Constraints:

    - `count_arrivals_c1`: there are two slots.

    Example:

    ```mlir
    %t0 = zrt.count_arrivals to @arrivals after()
    ```
  }];
}

def Zrt_CopyOp : Zrt_CallOp<"copy", (ins FlatSymbolRefAttr:$source,
    FlatSymbolRefAttr:$target), "$source `to` $target"> {
  let summary = "Copies what this rank holds of both buffers";
  let description = [{
    Of a full and a sharded buffer this rank's slice is copied; of two of a kind
    all that it holds. The only call that reads one space and writes another.

    Constraints:

    - `copy_c1`: the buffers exist and have one global shape and type;
    - `copy_c2`: they are not the same;
    - `copy_c3`: but for what is sharded they have one placement and scale: to copy
      is not to reduce. If both are sharded, then over the same axes.

    Example:

    ```mlir
    %t0 = zrt.copy @b0.staging to @b0.parameters after()
    ```
  }];
}

class Zrt_ScatterOp<string mnemonic>
    : Zrt_CallOp<mnemonic, (ins FlatSymbolRefAttr:$source,
        FlatSymbolRefAttr:$target, StrArrayAttr:$axes),
        "$source `to` $target `over` custom<NameList>($axes)">;

def Zrt_AllReduceOp : Zrt_CallOp<"all_reduce",
    (ins FlatSymbolRefAttr:$buffer, OptionalAttr<FlatSymbolRefAttr>:$target,
         StrArrayAttr:$axes),
    "$buffer (`to` $target^)? `over` custom<NameList>($axes)"> {
  let summary = "Sums a buffer over the ranks of some axes, in place or to another";
  let description = [{
    A target may have a wider type than the buffer: addends travel as the buffer
    has them, are summed in the target's type, and sums travel in that. Then what
    a rank sends is that of a reduce_scatter and an all_gather.

    Constraints:

    - `all_reduce_c1`: the buffer exists, is not sharded over these axes, and is on
      the device;
    - `all_reduce_c2`: the target, if there is one, is another buffer on the device
      with memory of its own and the same placement, whose type holds every number of
      the buffer's.

    Example:

    ```mlir
    %t0 = zrt.all_reduce @b0.wire to @b0.gradient over [dp] after()
    ```
  }];
  let extraClassDeclaration = [{
    /// The buffer that gets the sum.
    ::mlir::FlatSymbolRefAttr getResultBuffer() {
      return getTargetAttr() ? getTargetAttr() : getBufferAttr();
    }
  }];
}

def Zrt_AllGatherOp : Zrt_CallOp<"all_gather",
    (ins FlatSymbolRefAttr:$buffer, StrArrayAttr:$axes),
    "$buffer `over` custom<NameList>($axes)"> {
  let summary = "Each rank's slice of a row reaches the others, in place";
  let description = [{
    Constraints:

    - `all_gather_c1`: the buffer exists, its rows are whole and not sharded over
      these axes, and it is on the device.

    Example:

    ```mlir
    %t0 = zrt.all_gather @b0.parameters over [dp] after()
    ```
  }];
}

def Zrt_ReduceScatterOp : Zrt_ScatterOp<"reduce_scatter"> {
  let summary = "Sums over the ranks of some axes; rank i gets slice i of a row";
  let description = [{
    Addends travel as the source has them, and are summed in the target's type.

    Constraints:

    - `reduce_scatter_c1`: rows of the source are whole and those of the target
      sharded over these axes, with the same rows otherwise;
    - `reduce_scatter_c2`: both are on the device;
    - `reduce_scatter_c3`: the target's type holds every number of the source's.

    Example:

    ```mlir
    %t0 = zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp] after()
    ```
  }];
}

def Zrt_ReduceScatterAddOp : Zrt_ScatterOp<"reduce_scatter_add"> {
  let summary = "As reduce_scatter, and adds to what the target holds";
  let description = [{
    Constraints:

    - `reduce_scatter_add_c1`: as `reduce_scatter_c1`, `_c2` and `_c3`.

    Example:

    ```mlir
    %t0 = zrt.reduce_scatter_add @b0.gradient to @b0.reduced over [dp] after()
    ```
  }];
}

def Zrt_KeepOnRootOp : Zrt_CallOp<"keep_on_root",
    (ins FlatSymbolRefAttr:$buffer, StrArrayAttr:$axes),
    "$buffer `over` custom<NameList>($axes)"> {
  let summary = "Makes addends of a sum again, in place";
  let description = [{
    The first rank of the axes keeps what all of them have, and the others have
    zeros. Equivalent to: resharding from `Replicate` to `Partial`.

    Constraints:

    - `keep_on_root_c1`: the buffer exists, is not sharded over these axes, and is on
      the device;
    - `keep_on_root_c2`: ranks of each of the axes have addends of it.

    Example:

    ```mlir
    %t0 = zrt.keep_on_root @b0.gradient over [dp] after()
    ```
  }];
}

def Zrt_CountReplicatedOnceOp : Zrt_CallOp<"count_replicated_once",
    (ins FlatSymbolRefAttr:$slots, I64Attr:$index, StrArrayAttr:$axes),
    "$slots `[` $index `]` `over` custom<NameList>($axes)"> {
  let summary = "Zeroes a slot on all ranks but the first of some axes";
  let description = [{
    What all of them have counts once in a sum.

    Constraints:

    - `count_replicated_once_c1`: the slot exists.

    Example:

    ```mlir
    %t0 = zrt.count_replicated_once @statistics[0] over [tp] after()
    ```
  }];
}

def Zrt_AllReduceScalarsOp : Zrt_CallOp<"all_reduce_scalars",
    (ins FlatSymbolRefAttr:$slots, StrArrayAttr:$axes),
    "$slots `over` custom<NameList>($axes)"> {
  let summary = "Sums slots over the ranks of some axes";
  let description = [{
    Constraints:

    - `all_reduce_scalars_c1`: the slots exist.

    Example:

    ```mlir
    %t0 = zrt.all_reduce_scalars @statistics over [dp] after()
    ```
  }];
}

def Zrt_CommitOp : Zrt_CallOp<"commit",
    (ins FlatSymbolRefAttr:$outcome), "$outcome"> {
  let summary = "Closes the step's books with the outcome";
  let description = [{
    Constraints:

    - `commit_c1`: the slot exists.

    Example:

    ```mlir
    %t0 = zrt.commit @outcome after()
    ```
  }];
}

#endif // ZRT_PROGRAM_OPS_TD
