//===- TableOps.td - What a step owns ----------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZRT_TABLE_OPS_TD
#define ZRT_TABLE_OPS_TD

include "dialect/zrt/ZrtDialect.td"
include "dialect/zero/ZeroTypes.td"

def Zrt_ProgramOp : Zrt_Op<"program",
    [Symbol, SymbolTable, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "One scheduled step: its tables, handlers and protocol";
  let description = [{
    Slots, buffers, kernels, handlers and the rest are symbols of the program;
    parameters, buckets and the mesh are symbols of the module. `inputs` are the
    slots that `apply` fills, `results` those it reports, `loss_scale` is what
    multiplies losses.

    Constraints:

    - `program_c1`: inputs and results are `zrt.slots` of the program, and each
      result has a name of its own;
    - `program_c2`: axes that buffers and calls name are axes of the mesh;
    - `program_c3`: what a call works on slices of divides evenly;
    - `program_c4`: a call that works on what is on some pipeline stages only is not
      over their axis; but for an `all_reduce` of what is on several of them;
    - `program_c5`: the loss scale exists, and slots are its number.

    Example:

    ```mlir
    zrt.program @train on @cluster inputs [@lr] results [norm] [@norm] {
      zrt.slots @lr [0.0]
      zrt.slots @norm [0.0]
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$mesh,
    OptionalAttr<FlatSymbolRefAttr>:$loss_scale,
    FlatSymbolRefArrayAttr:$inputs, StrArrayAttr:$result_names,
    FlatSymbolRefArrayAttr:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `on` $mesh (`loss_scale` $loss_scale^)? `inputs` $inputs
    `results` custom<NameList>($result_names) $results attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The slots of each input.
    ::std::vector<::zrt::SlotsOp> getInputSlots();
    /// Which input is the number of tokens; -1 if none is.
    int64_t getTokensInput();
  }];
}

class Zrt_TableOp<string mnemonic, list<Trait> traits = []>
    : Zrt_Op<mnemonic, traits # [HasParent<"ProgramOp">]>;
class Zrt_SymbolOp<string mnemonic, list<Trait> traits = []>
    : Zrt_TableOp<mnemonic, traits # [Symbol]>;
class Zrt_UserOp<string mnemonic, list<Trait> traits = []>
    : Zrt_TableOp<mnemonic, traits # [
        DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

def Zrt_SlotsOp : Zrt_SymbolOp<"slots"> {
  let summary = "Consecutive f64 scalars with their initial values";
  let description = [{
    Per-step scalars live in memory and are loaded by kernels, so that nothing
    about a step is baked into a launch.

    Of an input of the program `over` names the axes over which each rank passes
    an addend of its own to `apply`; over the others all pass the same. `is` names
    the symbol of scales that the first slot is the number of: of an input, whose
    sum it is, `tokens`; of state, `loss_scale`, until the step changes it. `hyper`
    is the name of the hyperparameter that an input is, for messages.

    Constraints:

    - `slots_c1`: there is at least one;
    - `slots_c2`: what is `over` axes, `is` `tokens` or is `hyper` is an input of the
      program, of one slot; axes are those of the mesh;
    - `slots_c3`: a symbol is `tokens` or, where the program has one, `loss_scale`,
      and one at most of each is there; a loss scale lives across steps.

    Example:

    ```mlir
    zrt.slots @decay.counters [1.0, 1.0]
    zrt.slots @input.0 [0.0] hyper "lr"
    zrt.slots @input.1 [0.0] over [dp] is "tokens"
    zrt.slots @scale.counters [1024.0, 0.0] is "loss_scale"
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseF64ArrayAttr:$initial,
    OptionalAttr<StrArrayAttr>:$over, OptionalAttr<StrAttr>:$stands_for,
    OptionalAttr<StrAttr>:$hyper);
  let assemblyFormat = [{
    $sym_name $initial (`over` custom<NameList>($over)^)? (`is` $stands_for^)?
    (`hyper` $hyper^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t size() { return getInitial().size(); }
    bool isTokens() { return getStandsFor() == ::zero::kTokens; }
    bool isLossScale() {
      return getStandsFor() == ::zero::kLossScale;
    }
  }];
}

def Zrt_BufferOp : Zrt_SymbolOp<"buffer",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Memory with a role, a space and the placement of its contents";
  let description = [{
    The type is what the buffer holds, with its global shape: that of a bucket. Of
    the rows that model parallelism makes a rank holds one; where the last
    dimension is sharded it holds 1/n of that. The type leaves the space to `in`.
    `on_demand` buffers are allocated by a handler. One that `shares` another has no
    memory of its own: what it holds is gone when the other is written.

    Constraints:

    - `buffer_c1`: the type is a `!zero.value` of one row, or of one dimension for
      each axis that shards rows in front of the last;
    - `buffer_c2`: what is sharded divides evenly, and there is one row for each
      rank of the axes that shard rows;
    - `buffer_c3`: the type says nothing of the space;
    - `buffer_c4`: memory is shared with a buffer of the program that is as large or
      larger, is in the same space and on the same pipeline stages, and has memory
      of its own; neither is sharded or on demand.

    Example:

    ```mlir
    zrt.buffer @b0.m : !zero.value<64xf32, sharded = [dp]> role state in device
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type,
    Zrt_RoleAttr:$role, Zrt_SpaceAttr:$space, UnitAttr:$on_demand,
    DefaultValuedOptionalAttr<F64Attr, "0.0">:$fill,
    OptionalAttr<FlatSymbolRefAttr>:$shares);
  let assemblyFormat = [{
    $sym_name `:` $type `role` custom<Role>($role) `in` custom<Space>($space)
    (`on_demand` $on_demand^)? (`fill` $fill^)? (`shares` $shares^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The buffer whose memory this one uses: itself unless it shares.
    ::mlir::FlatSymbolRefAttr getMemory() {
      return getSharesAttr() ? getSharesAttr()
                             : ::mlir::FlatSymbolRefAttr::get(getOperation());
    }
    /// Of a row.
    int64_t getNumBytes() {
      return getRowLength() *
             getValueType().getElementType().getIntOrFloatBitWidth() / 8;
    }
    ::zero::ValueType getValueType() {
      return ::llvm::cast<::zero::ValueType>(getType());
    }
    /// The elements of a row: what this rank holds, unless it is sharded.
    int64_t getRowLength() { return getValueType().getShape().back(); }
    /// The axes over which a row is divided.
    ::llvm::SmallVector<::mlir::StringAttr> getOwners() {
      ::zero::ValueType type = getValueType();
      return type.getAxesOfDim(type.getShape().size() - 1);
    }
    bool isSharded() { return !getOwners().empty(); }
  }];
}

def Zrt_KernelOp : Zrt_SymbolOp<"kernel", [IsolatedFromAbove]> {
  let summary = "A fused loop: one scalar body for each element";
  let description = [{
    Operands are arrays with an element type and an access. The body takes the
    element of each operand that is read or updated, then `scalars` f64 per-step
    scalars, and yields the new element of each operand that is written or
    updated. With `sums` it also yields one f64, which is summed over all
    elements in a fixed order: lane i mod 32, blocks of 4096 elements, lanes
    folded in halves, and the sums of blocks are summed likewise. `predicated`
    kernels do nothing unless their first scalar is 0.

    Bodies hold `arith` and `math` ops. Multiply-adds are contracted only where
    `math.fma` says so. bf16 is converted by integer rounding to nearest even.
    Results are the same on every machine, but for the sign and the payload of a
    NaN; `math.copysign` takes the sign of a NaN for that of 0.

    Constraints:

    - `kernel_c1`: arguments are the elements that are read, then f64 scalars;
    - `kernel_c2`: the body yields an element per operand that is written, and an
      f64 if it sums;
    - `kernel_c3`: the body holds only `arith` and `math` ops and `zrt.yield`;
    - `kernel_c4`: a predicated kernel has a scalar;
    - `kernel_c5`: each operand has an access;
    - `kernel_c6`: there are at most 4096 scalars.

    Example:

    ```mlir
    zrt.kernel @store [read bf16, write f32] scalars 0 {
    ^body(%g: bf16):
      %x = arith.extf %g : bf16 to f32
      zrt.yield %x : f32
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeArrayAttr:$operand_types,
    TypedArrayAttrBase<Zrt_AccessAttr, "accesses">:$accesses,
    I64Attr:$num_scalars, UnitAttr:$predicated, UnitAttr:$sums);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name custom<KernelOperands>($operand_types, $accesses)
    `scalars` $num_scalars (`predicated` $predicated^)? (`sums` $sums^)?
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    unsigned getNumArrays() { return getOperandTypes().size(); }
    ::mlir::Type getArrayType(unsigned i) {
      return ::llvm::cast<::mlir::TypeAttr>(getOperandTypes()[i]).getValue();
    }
    Access getArrayAccess(unsigned i) {
      return ::llvm::cast<AccessAttr>(getAccesses()[i]).getValue();
    }
  }];
}

def Zrt_ScalarsOp : Zrt_SymbolOp<"scalars", [IsolatedFromAbove]> {
  let summary = "Straight-line f64 math over slots";
  let description = [{
    Constraints:

    - `scalars_c1`: the body holds `zrt.load_slot`, `zrt.store_slot`, `arith` and
      `math` ops, and ends with `zrt.yield` of nothing;
    - `scalars_c2`: its floats are f64.

    Example:

    ```mlir
    zrt.scalars @half {
      %x = zrt.load_slot @lr[0]
      %c = arith.constant 0.5 : f64
      %y = arith.mulf %x, %c : f64
      zrt.store_slot %y, @norm[0]
      zrt.yield
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Zrt_YieldOp : Zrt_Op<"yield",
    [Terminator, Pure, ParentOneOf<["KernelOp", "ScalarsOp"]>]> {
  let summary = "Ends the body of a kernel or of a scalar program";
  let description = [{
    Yields the elements that a kernel writes, and the addend of one that sums.

    Example: see `zrt.kernel`.
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Zrt_LoadSlotOp : Zrt_Op<"load_slot",
    [MemoryEffects<[MemRead]>, HasParent<"ScalarsOp">,
     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Reads a slot";
  let description = [{
    Constraints:

    - `load_slot_c1`: the slot exists.

    Example: see `zrt.scalars`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$slots, I64Attr:$index);
  let results = (outs F64:$value);
  let assemblyFormat = "$slots `[` $index `]` attr-dict";
}

def Zrt_StoreSlotOp : Zrt_Op<"store_slot",
    [MemoryEffects<[MemWrite]>, HasParent<"ScalarsOp">,
     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Writes a slot";
  let description = [{
    Constraints:

    - `store_slot_c1`: the slot exists.

    Example: see `zrt.scalars`.
  }];
  let arguments = (ins F64:$value, FlatSymbolRefAttr:$slots, I64Attr:$index);
  let assemblyFormat = "$value `,` $slots `[` $index `]` attr-dict";
}

def Zrt_SegmentsOp : Zrt_SymbolOp<"segments",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Intervals of a bucket, each with the slots its scalars come from";
  let description = [{
    `ends[i]` is where interval i ends and the next begins; the first begins at
    0. Interval i runs with the scalars in `scalars[rows[i]]`, from index 0 on.

    Constraints:

    - `segments_c1`: ends increase;
    - `segments_c2`: there is a row in range for each interval, unless no scalars
      are given.

    Example:

    ```mlir
    zrt.segments @b0.groups ends [64, 96] rows [0, 1] scalars [@decay.row, @no_decay.row]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$ends,
    DenseI64ArrayAttr:$rows, FlatSymbolRefArrayAttr:$scalars);
  let assemblyFormat = "$sym_name `ends` $ends `rows` $rows `scalars` $scalars attr-dict";
  let hasVerifier = 1;
}

def Zrt_EventOp : Zrt_SymbolOp<"event"> {
  let summary = "A point in a stream, for which other streams can wait";
  let description = [{
    What a handler leaves in flight is a named event, so that other handlers and the
    caller can wait for it. Equivalent to: `cudaEvent_t`.

    Example:

    ```mlir
    zrt.event @b0.reduced.done on collective
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Zrt_StreamAttr:$stream);
  let assemblyFormat = "$sym_name `on` custom<Stream>($stream) attr-dict";
}

def Zrt_BucketTableOp : Zrt_UserOp<"bucket_table"> {
  let summary = "Where the gradients of a bucket go, and where its values live";
  let description = [{
    `store` writes the first contribution of a parameter, `add` a later one; both
    have the operands (arriving gradient, gradient buffer). `master` is left out
    where the parameters themselves are the master weights. `staging` is what the
    update writes where that is in another space than the parameters: a copy of
    this rank's part of them, so whoever writes parameters writes it, too.

    `writable` lists the events after which gradients may be written: the compute
    stream waits for them at `wait_writable`, and where the caller asks for a view
    of a gradient. `readable` lists the events after which parameters may be read:
    the caller's stream waits for them at `parameter_wait`. Without that list it
    waits for what the compute stream has queued.

    Constraints:

    - `bucket_table_c1`: the bucket, the buffers and the kernels exist;
    - `bucket_table_c2`: buffers have the bucket's shape;
    - `bucket_table_c3`: kernels take the arrival type and the gradient buffer's, read
      the first and write or update the second, and sum nothing;
    - `bucket_table_c4`: gradients arrive, and parameters are read, on the device;
    - `bucket_table_c5`: `staging` has the parameters' element type;
    - `bucket_table_c6`: the gradient and the parameter buffer are not sharded: a rank
      delivers and reads all that it holds of a parameter;
    - `bucket_table_c7`: parameters, `master` and `staging` live across steps: they are
      not on demand, and share no memory;
    - `bucket_table_c8`: the events exist, and `writable` ones are of other streams than
      compute.

    Example:

    ```mlir
    zrt.bucket_table @b0 into @b0.gradient store @store add @add parameters @b0.parameters master @b0.master
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, FlatSymbolRefAttr:$gradient,
    FlatSymbolRefAttr:$store, FlatSymbolRefAttr:$add,
    FlatSymbolRefAttr:$parameters, OptionalAttr<FlatSymbolRefAttr>:$master,
    OptionalAttr<FlatSymbolRefAttr>:$staging,
    OptionalAttr<FlatSymbolRefArrayAttr>:$writable,
    OptionalAttr<FlatSymbolRefArrayAttr>:$readable);
  let assemblyFormat = [{
    $bucket `into` $gradient `store` $store `add` $add `parameters` $parameters
    (`master` $master^)? (`staging` $staging^)? (`writable` $writable^)?
    (`readable` $readable^)? attr-dict
  }];
}

def Zrt_StateOp : Zrt_UserOp<"state"> {
  let summary = "A buffer of a bucket that lives across steps";
  let description = [{
    What a checkpoint saves: by (parameter, role, global interval), independent of
    buckets.

    Constraints:

    - `state_c1`: bucket and buffer exist;
    - `state_c2`: the buffer has the bucket's shape;
    - `state_c3`: the buffer is not on demand, and shares no memory.

    Example:

    ```mlir
    zrt.state m of @b0 in @b0.m
    ```
  }];
  let arguments = (ins StrAttr:$role, FlatSymbolRefAttr:$bucket,
                       FlatSymbolRefAttr:$buffer);
  let assemblyFormat = "custom<Keyword>($role) `of` $bucket `in` $buffer attr-dict";
}

def Zrt_ScalarStateOp : Zrt_UserOp<"scalar_state"> {
  let summary = "A slot that lives across steps";
  let description = [{
    What `changes_on_skip` may have another value after a step that is skipped
    because a gradient is not finite: a loss scale, a schedule. The proof refuses a
    program in which another does.

    Constraints:

    - `scalar_state_c1`: the slot exists;
    - `scalar_state_c2`: roles of scalars are unique.

    Example:

    ```mlir
    zrt.scalar_state "decay.beta1_t" in @decay.counters[0]
    zrt.scalar_state "lr.step" in @lr.counters[0] changes_on_skip
    ```
  }];
  let arguments = (ins StrAttr:$role, FlatSymbolRefAttr:$slots, I64Attr:$index,
    UnitAttr:$changes_on_skip);
  let assemblyFormat = [{
    $role `in` $slots `[` $index `]` (`changes_on_skip` $changes_on_skip^)?
    attr-dict
  }];
}

#endif // ZRT_TABLE_OPS_TD
