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

include "dialect/zrt/ScheduleOps.td"

/// A call that may run on another stream than compute.
class Zrt_QueuedOp<string mnemonic, dag extra = (ins), string format = "",
                   list<Trait> traits = [], list<string> overrides = []>
    : Zrt_CallOp<mnemonic, extra, format, traits, overrides> {
  let arguments = !con(extra,
      (ins DefaultValuedOptionalAttr<Zrt_StreamAttr, "Stream::compute">:$stream));
  let assemblyFormat = format # " (`on` custom<Stream>($stream)^)? attr-dict";
}

class Zrt_CollectiveOp<string mnemonic, dag extra, string format>
    : Zrt_QueuedOp<mnemonic, extra, format,
                   [DeclareOpInterfaceMethods<Zrt_Collective>]>;

def Zrt_AllocateOp : Zrt_QueuedOp<"allocate",
    (ins FlatSymbolRefAttr:$buffer), "$buffer"> {
  let summary = "Allocates an on-demand buffer";
  let description = [{
    The contents are undefined. A buffer that shares memory uses this memory from here on.

    Constraints:

    - `allocate_c1`: the buffer exists and is on demand;
    - `allocate_c2`: a buffer with memory of its own is allocated on the compute stream. Reason:
      the device allocates in the order of this stream.

    Example:

    ```mlir
    zrt.allocate @b0.reduced
    zrt.allocate @b0.unsharded on collective
    ```
  }];
}

def Zrt_ReleaseOp : Zrt_QueuedOp<"release",
    (ins FlatSymbolRefAttr:$buffer), "$buffer"> {
  let summary = "Frees an on-demand buffer";
  let description = [{
    Constraints:

    - `release_c1`: as `allocate_c1` and `allocate_c2`.

    Example:

    ```mlir
    zrt.release @b0.reduced
    zrt.release @b0.unsharded on collective
    ```
  }];
}

def Zrt_SetRoleOp : Zrt_CallOp<"set_role",
    (ins FlatSymbolRefAttr:$buffer, Zrt_RoleAttr:$role),
    "$buffer `as` custom<Role>($role)"> {
  let summary = "Changes the role of a buffer; moves no byte";
  let description = [{
    When a second backward pass begins, the buffer that the first one wrote becomes the
    accumulator.

    Constraints:

    - `set_role_c1`: the buffer exists and has memory of its own.

    Example:

    ```mlir
    zrt.set_role @b0.gradient as accumulator
    ```
  }];
}

def Zrt_PackOp : Zrt_CallOp<"pack", (ins UnitAttr:$accumulate),
    "(`accumulate` $accumulate^)?"> {
  let summary = "Writes or adds the arriving gradient to its bucket";
  let description = [{
    Reads the arriving gradient, which is memory of the caller. The caller has written it on
    the stream `caller`, and may write it again when the stream `caller` has waited.

    Runs in an `arrive` handler. If a parameter is used more than once in a backward pass, the
    gradients of later uses are always added, with or without `accumulate`.

    Example:

    ```mlir
    zrt.pack accumulate
    ```
  }];
}

def Zrt_FillMissingOp : Zrt_CallOp<"fill_missing",
    (ins FlatSymbolRefAttr:$bucket), "$bucket"> {
  let summary = "Zeroes the gradients that did not arrive in this backward pass, and their pads";
  let description = [{
    Constraints:

    - `fill_missing_c1`: the bucket has a `zrt.bucket_table`.

    Example:

    ```mlir
    zrt.fill_missing @b0
    ```
  }];
}

def Zrt_LaunchOp : Zrt_QueuedOp<"launch",
    (ins FlatSymbolRefAttr:$kernel, FlatSymbolRefArrayAttr:$buffers,
         FlatSymbolRefAttr:$segments, OptionalAttr<Zero_NameArrayAttr>:$own,
         OptionalAttr<FlatSymbolRefAttr>:$sum,
         DefaultValuedOptionalAttr<I64Attr, "0">:$sum_index,
         UnitAttr:$first_stage),
    "$kernel $buffers `over` $segments (`own` custom<NameList>($own)^)? (`sum` $sum^)? "
    "(`at` $sum_index^)? (`first_stage` $first_stage^)?", [], ["getMemoryUses"]> {
  let summary = "Runs a kernel over the segments of a bucket";
  let description = [{
    With `own [dp]` the kernel runs over this rank's slice of a row only, if the row is divided
    over these axes. `sum` is the scalar slot that receives the sum of a kernel that sums. If
    buffers are on several pipeline stages, `first_stage` runs the kernel on the first of these
    stages only. So replicated elements count once.

    Constraints:

    - `launch_c1`: kernel, buffers, segments and scalar slot exist;
    - `launch_c2`: there is one buffer per operand of the kernel, of the operand's type;
    - `launch_c3`: buffers have the same rows, and the segments fill a row;
    - `launch_c4`: if a row of a buffer is sharded, it is sharded over the axes of `own`;
    - `launch_c5`: `sum` is given exactly if the kernel sums; then there is one segment;
    - `launch_c6`: the scalar slots of each segment are at least as many as the kernel takes;
    - `launch_c7`: buffers are in one space, and the kernel runs there;
    - `launch_c8`: ranks that differ over the axes of `own` have the same rows;
    - `launch_c9`: with `first_stage` the kernel writes no buffer;
    - `launch_c10`: a kernel on the device runs on the compute stream, and one on the host
      on that or on the stream of the host.

    Example:

    ```mlir
    zrt.launch @squares [@b0.reduced] over @b0.all own [dp] sum @norm at 0
    ```
  }];
}

def Zrt_RunScalarsOp : Zrt_CallOp<"run_scalars",
    (ins FlatSymbolRefAttr:$program), "$program", [], ["getMemoryUses"]> {
  let summary = "Runs a scalar program";
  let description = [{
    Constraints:

    - `run_scalars_c1`: the program exists.

    Example:

    ```mlir
    zrt.run_scalars @half
    ```
  }];
}

def Zrt_CountArrivalsOp : Zrt_CallOp<"count_arrivals",
    (ins FlatSymbolRefAttr:$slots), "`to` $slots"> {
  let summary = "Writes the numbers of backward passes and of missing gradients";
  let description = [{
    The second number also counts lost activations and bad inputs. A rank adds:

    - the number of activations that it sent, minus the number that it received;
    - the number of its inputs that updates depend on and that are not finite;
    - a multiple of a digest of these inputs. The multiples are chosen so that their sum is 0 if
      all ranks have the same inputs. The sum may be negative if they do not.

    So the sum over all ranks is 0 if no gradient is missing, no activation is lost, and every
    such input is finite and the same on all ranks.

    Constraints:

    - `count_arrivals_c1`: there are two scalar slots.

    Example:

    ```mlir
    zrt.count_arrivals to @arrivals
    ```
  }];
}

def Zrt_CountDeliveredOp : Zrt_CallOp<"count_delivered",
    (ins FlatSymbolRefAttr:$parameter, FlatSymbolRefAttr:$slots, I64Attr:$index),
    "$parameter `to` $slots `[` $index `]`"> {
  let summary = "Writes the number of backward passes in which a gradient arrived";
  let description = [{
    Counts the backward passes since the last apply or discard in which at least one piece of
    the gradient of the parameter arrived on this rank. A backward pass in which several
    pieces arrived counts once. The number is 0 on ranks that do not have the parameter.

    Equivalent to: 0 where `param.grad is None` in PyTorch. Frozen parameters have no count,
    since no gradient of them arrives.

    Constraints:

    - `count_delivered_c1`: the parameter is a member of a bucket;
    - `count_delivered_c2`: the scalar slot exists.

    Example:

    ```mlir
    zrt.count_delivered @w to @delivered[3]
    ```
  }];
}

def Zrt_CopyOp : Zrt_QueuedOp<"copy", (ins FlatSymbolRefAttr:$source,
    FlatSymbolRefAttr:$target), "$source `to` $target"> {
  let summary = "Copies the part of a buffer that this rank holds of both buffers";
  let description = [{
    If one buffer is sharded and the other is not, this rank's slice is copied. If both are
    sharded or neither is, everything that the rank holds is copied. No other call reads one
    space and writes another.

    Constraints:

    - `copy_c1`: the buffers exist and have one global shape and element type;
    - `copy_c2`: the buffers differ;
    - `copy_c3`: apart from the sharding of rows, the buffers have one placement and scale.
      Reason: a copy does not reduce. If both are sharded, they are sharded over the same
      axes.

    Example:

    ```mlir
    zrt.copy @b0.staging to @b0.parameters
    ```
  }];
}

class Zrt_ScatterOp<string mnemonic>
    : Zrt_CollectiveOp<mnemonic, (ins FlatSymbolRefAttr:$source,
        FlatSymbolRefAttr:$target, Zero_NameArrayAttr:$axes),
        "$source `to` $target `over` custom<NameList>($axes)">;

def Zrt_AllReduceOp : Zrt_CollectiveOp<"all_reduce",
    (ins FlatSymbolRefAttr:$buffer, OptionalAttr<FlatSymbolRefAttr>:$target,
         Zero_NameArrayAttr:$axes),
    "$buffer (`to` $target^)? `over` custom<NameList>($axes)"> {
  let summary = "Sums a buffer over the ranks of some axes, in place or into another buffer";
  let description = [{
    A target may have a wider type than the buffer. Addends then travel in the buffer's type.
    The sum is taken in the target's type and travels in it. In this case a rank sends as many
    bytes as in a reduce_scatter and an all_gather.

    Constraints:

    - `all_reduce_c1`: the buffer exists, is not sharded over these axes, and is on the
      device;
    - `all_reduce_c2`: a target is another buffer on the device, has the same placement, does
      not share the buffer's memory, and its type holds every number of the buffer's type.

    Example:

    ```mlir
    zrt.all_reduce @b0.wire to @b0.gradient over [dp]
    ```
  }];
  let extraClassDeclaration = [{
    /// The buffer that gets the sum.
    ::mlir::FlatSymbolRefAttr getResultBuffer() {
      return getTargetAttr() ? getTargetAttr() : getBufferAttr();
    }
  }];
}

def Zrt_AllGatherOp : Zrt_CollectiveOp<"all_gather",
    (ins FlatSymbolRefAttr:$buffer, Zero_NameArrayAttr:$axes),
    "$buffer `over` custom<NameList>($axes)"> {
  let summary = "Sends each rank's slice of a row to the other ranks, in place";
  let description = [{
    Constraints:

    - `all_gather_c1`: the buffer exists, its rows are whole, it is not sharded over these
      axes, and it is on the device.

    Example:

    ```mlir
    zrt.all_gather @b0.parameters over [dp]
    ```
  }];
}

def Zrt_ReduceScatterOp : Zrt_ScatterOp<"reduce_scatter"> {
  let summary = "Sums over the ranks of some axes; rank i gets slice i of a row";
  let description = [{
    Addends travel in the source's type. The sum is taken in the target's type.

    Constraints:

    - `reduce_scatter_c1`: rows of the source are whole, rows of the target are sharded over
      these axes, and apart from this both have the same rows;
    - `reduce_scatter_c2`: both buffers are on the device;
    - `reduce_scatter_c3`: the target's type holds every number of the source's type.

    Example:

    ```mlir
    zrt.reduce_scatter @b0.gradient to @b0.reduced over [dp]
    ```
  }];
}

def Zrt_ReduceScatterAddOp : Zrt_ScatterOp<"reduce_scatter_add"> {
  let summary = "Like reduce_scatter, and adds the result to the target";
  let description = [{
    Constraints:

    - `reduce_scatter_add_c1`: as `reduce_scatter_c1`, `_c2` and `_c3`.

    Example:

    ```mlir
    zrt.reduce_scatter_add @b0.gradient to @b0.reduced over [dp]
    ```
  }];
}

def Zrt_KeepOnRootOp : Zrt_CallOp<"keep_on_root",
    (ins FlatSymbolRefAttr:$buffer, Zero_NameArrayAttr:$axes),
    "$buffer `over` custom<NameList>($axes)"> {
  let summary = "Turns a sum back into addends, in place";
  let description = [{
    The first rank of the axes keeps the sum, and the other ranks get zeros. Equivalent to:
    resharding from `Replicate` to `Partial`.

    Constraints:

    - `keep_on_root_c1`: the buffer exists, is not sharded over these axes, and is on the
      device;
    - `keep_on_root_c2`: the buffer's type is partial over each of the axes.

    Example:

    ```mlir
    zrt.keep_on_root @b0.gradient over [dp]
    ```
  }];
}

def Zrt_CountReplicatedOnceOp : Zrt_CallOp<"count_replicated_once",
    (ins FlatSymbolRefAttr:$slots, I64Attr:$index, Zero_NameArrayAttr:$axes),
    "$slots `[` $index `]` `over` custom<NameList>($axes)"> {
  let summary = "Zeroes a scalar slot on all ranks of some axes but the first";
  let description = [{
    So a scalar that all of these ranks have counts once in a sum.

    Constraints:

    - `count_replicated_once_c1`: the scalar slot exists.

    Example:

    ```mlir
    zrt.count_replicated_once @statistics[0] over [tp]
    ```
  }];
}

def Zrt_AllReduceScalarsOp : Zrt_CollectiveOp<"all_reduce_scalars",
    (ins FlatSymbolRefAttr:$slots, Zero_NameArrayAttr:$axes),
    "$slots `over` custom<NameList>($axes)"> {
  let summary = "Sums scalar slots over the ranks of some axes";
  let description = [{
    Constraints:

    - `all_reduce_scalars_c1`: the scalar slots exist.

    Example:

    ```mlir
    zrt.all_reduce_scalars @statistics over [dp]
    ```
  }];
}

def Zrt_CommitOp : Zrt_CallOp<"commit",
    (ins FlatSymbolRefAttr:$outcome), "$outcome", [], ["getMemoryUses"]> {
  let summary = "Ends the step with the outcome in a scalar slot";
  let description = [{
    If gradients are missing, ranks exchange their names, so that every rank can report them.

    Constraints:

    - `commit_c1`: the scalar slot exists.

    Example:

    ```mlir
    zrt.commit @outcome
    ```
  }];
}

def Zrt_CopyScalarsOp : Zrt_CallOp<"copy_scalars", (ins), "", [],
    ["getMemoryUses"]> {
  let summary = "Copies the slots to where kernels on the host read them";
  let description = [{
    A kernel on the host reads its scalars from this copy.

    Example:

    ```mlir
    zrt.copy_scalars
    ```
  }];
}

#endif // ZRT_PROGRAM_OPS_TD
