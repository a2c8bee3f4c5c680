//===- TableOps.td - Tables of a program -------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZRT_TABLE_OPS_TD
#define ZRT_TABLE_OPS_TD

include "dialect/zrt/ZrtDialect.td"
include "dialect/zero/ZeroTypes.td"

def Zrt_ProgramOp : Zrt_Op<"program",
    [Symbol, SymbolTable, IsolatedFromAbove, NoTerminator, SingleBlock,
     NoRegionArguments]> {
  let summary = "One scheduled step: its tables, handlers and protocol";
  let description = [{
    Scalar slots, buffers, kernels and handlers are symbols of the program. Parameters, buckets
    and the mesh are symbols of the module. `inputs` are the scalar slots that `apply` fills.
    `results` are the scalar slots that `apply` reports. `loss_scale` names the loss scale that
    multiplies losses. With `one_backward` a step has one backward pass, and the protocol
    refuses a second one. `batches` are the axes over which ranks have batches of their own,
    where a gradient has the same weight in any step of as many batches. Without it this is
    not known, and a checkpoint within a step is for as many ranks.

    Constraints:

    - `program_c1`: inputs and results are `zrt.slots` of the program, and names of results are
      unique;
    - `program_c2`: axes that buffers, calls and `batches` name are axes of the mesh;
    - `program_c3`: the rows of a buffer divide evenly over the axes of a call that works on
      slices of them;
    - `program_c4`: a call that works on buffers of some pipeline stages is not over the axis
      of these stages. Exception: an `all_reduce` of a buffer that is on several stages;
    - `program_c5`: the loss scale exists, and one `zrt.slots` is `loss_scale`.

    Example:

    ```mlir
    zrt.program @train on @cluster inputs [@lr] results [norm] [@norm] {
      zrt.slots @lr [0.0]
      zrt.slots @norm [0.0]
    }
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$mesh,
    OptionalAttr<FlatSymbolRefAttr>:$loss_scale, UnitAttr:$one_backward,
    FlatSymbolRefArrayAttr:$inputs, Zero_NameArrayAttr:$result_names,
    FlatSymbolRefArrayAttr:$results, OptionalAttr<Zero_NameArrayAttr>:$batches);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `on` $mesh (`loss_scale` $loss_scale^)? (`one_backward` $one_backward^)?
    (`batches` custom<NameList>($batches)^)? `inputs` $inputs
    `results` custom<NameList>($result_names) $results attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The scalar slots of each input.
    ::std::vector<::zrt::SlotsOp> getInputSlots();
    /// The index of the input that is the number of tokens; -1 if there is none.
    int64_t getTokensInput();
    /// Whether calls have streams. Otherwise they run in program order, and the
    /// caller is ordered with them.
    bool isScheduled();
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
  let summary = "Consecutive f64 scalar slots with their initial values";
  let description = [{
    Scalars of a step live in memory, and kernels load them. So a launch has no argument that
    changes from step to step.

    - `over`: the axes over which each rank passes an addend of its own to `apply`. Over the
      other axes all ranks pass the same number. Only an input has `over`.
    - `is`: the symbol of a scale whose number the first scalar slot has. `tokens` is an input,
      and its number is the sum of the addends. `loss_scale` is state, until the step changes
      it.
    - `name`: the name of an input for callers, that of the step's argument.
    - `hyper`: the name of the hyperparameter that an input is. Messages show it.
    - `positive`: a step in which the input is not positive and finite is refused.

    Constraints:

    - `slots_c1`: there is at least one scalar slot;
    - `slots_c2`: slots with `over`, with `is "tokens"`, with `name`, with `hyper` or with
      `positive` are an input of the program and have one scalar slot; axes of `over` are axes
      of the mesh; names are unique;
    - `slots_c3`: `is` is `tokens` or, if the program has a loss scale, `loss_scale`; each of
      the two occurs at most once; the slots of a loss scale are a `zrt.scalar_state`.

    Example:

    ```mlir
    zrt.slots @decay.counters [1.0, 1.0]
    zrt.slots @input.0 [0.0] name "lr.head" hyper "lr"
    zrt.slots @input.1 [0.0] over [dp] is "tokens"
    zrt.slots @input.2 [0.0] hyper "max_norm" positive
    zrt.slots @scale.counters [1024.0, 0.0] is "loss_scale"
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, DenseF64ArrayAttr:$initial,
    OptionalAttr<Zero_NameArrayAttr>:$over, OptionalAttr<Zero_NameAttr>:$stands_for,
    OptionalAttr<Zero_NameAttr>:$input_name, OptionalAttr<Zero_NameAttr>:$hyper,
    UnitAttr:$positive);
  let assemblyFormat = [{
    $sym_name $initial (`over` custom<NameList>($over)^)? (`is` $stands_for^)?
    (`name` $input_name^)? (`hyper` $hyper^)? (`positive` $positive^)? attr-dict
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
    The type is the type of the contents, with the global shape of the bucket. Model
    parallelism may divide a bucket into rows, and a rank then holds one row. If the last
    dimension is sharded over n ranks, a rank holds 1/n of the row. `in` gives the memory
    space, and the type does not repeat it. A handler allocates an `on_demand` buffer. A buffer
    that `shares` another has no memory of its own: a write to one buffer destroys the contents
    of the other. If such a buffer is on demand, no other on-demand buffer of this memory is
    allocated at the same time.

    Constraints:

    - `buffer_c1`: the type is a `!zero.value` of one row; if axes shard rows, it has one
      dimension for each of these axes before the last dimension;
    - `buffer_c2`: the size of an axis divides the extent that it shards, and there is one row
      for each rank of the axes that shard rows;
    - `buffer_c3`: the type has no space;
    - `buffer_c4`: a buffer whose memory is shared is in the same program, is at least as
      large, has the same role, is in the same space and on the same pipeline stages, has memory
      of its own, and is not on demand; neither buffer is sharded. At run time its role is
      that of both.

    Example:

    ```mlir
    zrt.buffer @b0.m : !zero.value<64xf32, sharded = [dp]> role state in device
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, TypeAttr:$type,
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
    /// The bytes of a row.
    int64_t getNumBytes() {
      return getRowLength() *
             getValueType().getElementType().getIntOrFloatBitWidth() / 8;
    }
    ::zero::ValueType getValueType() {
      return ::llvm::cast<::zero::ValueType>(getType());
    }
    /// The elements of a row. A rank holds all of them unless the row is sharded.
    int64_t getRowLength() { return getValueType().getShape().back(); }
    /// The axes over which a row is divided.
    ::llvm::SmallVector<::mlir::StringAttr> getOwners() {
      ::zero::ValueType type = getValueType();
      return type.getAxesOfDim(type.getShape().size() - 1);
    }
    bool isSharded() { return !getOwners().empty(); }
  }];
}

def Zrt_SegmentsOp : Zrt_SymbolOp<"segments",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Intervals of a bucket, each with the scalar slots that its kernel reads";
  let description = [{
    The first interval begins at 0. Interval i ends at `ends[i]`, where the next interval
    begins. A kernel runs on interval i with the scalars of `scalars[rows[i]]`, from index 0
    on.

    Constraints:

    - `segments_c1`: ends increase;
    - `segments_c2`: there is a row in range for each interval, unless there are no scalars.

    Example:

    ```mlir
    zrt.segments @b0.groups ends [64, 96] rows [0, 1] scalars [@decay.row, @no_decay.row]
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$ends,
    DenseI64ArrayAttr:$rows, FlatSymbolRefArrayAttr:$scalars);
  let assemblyFormat = "$sym_name `ends` $ends `rows` $rows `scalars` $scalars attr-dict";
  let hasVerifier = 1;
}

def Zrt_BucketTableOp : Zrt_UserOp<"bucket_table"> {
  let summary = "The buffers of a bucket: where its gradients go and where its parameters live";
  let description = [{
    `store` writes the first contribution of a parameter, and `add` adds a later one. Both
    kernels have the operands (arriving gradient, gradient buffer). Without `master` the
    parameters are the master weights. If updates write parameters in another space than the
    parameters, they write `staging`, a copy of this rank's part of the parameters. A write of
    parameters by the caller goes to `staging` as well.

    With `unsharded` each rank keeps a slice of the parameters. The caller reads whole
    parameters in the `unsharded` buffer while the bucket's unit is unsharded (see
    `zrt.unit_table`).

    `writable` lists the events after which gradients may be written. The compute stream
    waits for these events at `wait_writable`, and when the caller asks for a view of a
    gradient. `readable` lists the events after which parameters may be read. The caller's
    stream waits for these events at `parameter_wait`. Without `readable` it waits for the
    earlier work of the compute stream.

    Constraints:

    - `bucket_table_c1`: the bucket, the buffers and the kernels exist;
    - `bucket_table_c2`: buffers have the bucket's shape;
    - `bucket_table_c3`: `store` and `add` take the arrival type and the type of the gradient
      buffer, read the first, write or update the second, take no scalars, and sum nothing;
    - `bucket_table_c4`: the gradient buffer is on the device, and so are parameters without
      `unsharded`;
    - `bucket_table_c5`: `staging` has the parameters' element type;
    - `bucket_table_c6`: the gradient buffer, and `unsharded` or else the parameter buffer, are
      not sharded. Reason: a rank delivers and reads everything that it holds of a parameter;
    - `bucket_table_c7`: parameters, `master` and `staging` live across steps, so they are not
      on demand and share no memory;
    - `bucket_table_c8`: the events exist, none is of the stream `caller`, and `writable`
      events are not of the compute stream;
    - `bucket_table_c9`: `unsharded` is an on-demand buffer on the device with the parameters'
      element type, in memory of another buffer, so that a unit has one address; the
      parameters are sharded, the bucket is of a unit that has a `zrt.unit_table`, and there
      are no `readable` events. Reason: the caller's stream waits when the unit is unsharded.

    Example:

    ```mlir
    zrt.bucket_table @b0 into @b0.gradient store @store add @add parameters @b0.parameters master @b0.master
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, FlatSymbolRefAttr:$gradient,
    FlatSymbolRefAttr:$store, FlatSymbolRefAttr:$add,
    FlatSymbolRefAttr:$parameters, OptionalAttr<FlatSymbolRefAttr>:$master,
    OptionalAttr<FlatSymbolRefAttr>:$staging,
    OptionalAttr<FlatSymbolRefAttr>:$unsharded,
    OptionalAttr<FlatSymbolRefArrayAttr>:$writable,
    OptionalAttr<FlatSymbolRefArrayAttr>:$readable);
  let assemblyFormat = [{
    $bucket `into` $gradient `store` $store `add` $add `parameters` $parameters
    (`master` $master^)? (`staging` $staging^)? (`unsharded` $unsharded^)?
    (`writable` $writable^)? (`readable` $readable^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// The buffer in which the caller reads whole parameters.
    ::mlir::FlatSymbolRefAttr getReadByCaller() {
      return getUnshardedAttr() ? getUnshardedAttr() : getParametersAttr();
    }
  }];
}

def Zrt_FrozenTableOp : Zrt_UserOp<"frozen_table"> {
  let summary = "Where the frozen parameters of a unit live";
  let description = [{
    Each rank keeps a slice of the parameters of a `zero.frozen_bucket`, which no handler writes.
    The caller reads whole parameters in the `unsharded` buffer while the unit is unsharded (see
    `zrt.unit_table`).

    Constraints:

    - `frozen_table_c1`: the frozen bucket is sharded, and has no other table;
    - `frozen_table_c2`: buffers have the rows of the bucket, and its element type; the
      parameters are sharded as the bucket is;
    - `frozen_table_c3`: the parameters live across steps, so they are not on demand and share
      no memory;
    - `frozen_table_c4`: `unsharded` is as in `bucket_table_c9`.

    Example:

    ```mlir
    zrt.frozen_table @f0 parameters @f0.parameters unsharded @f0.unsharded
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket,
                       FlatSymbolRefAttr:$parameters,
                       FlatSymbolRefAttr:$unsharded);
  let assemblyFormat = [{
    $bucket `parameters` $parameters `unsharded` $unsharded attr-dict
  }];
}

def Zrt_StateOp : Zrt_UserOp<"state"> {
  let summary = "A buffer of a bucket that lives across steps";
  let description = [{
    A checkpoint saves state by (parameter, role, global interval), independent of buckets.

    Constraints:

    - `state_c1`: bucket and buffer exist;
    - `state_c2`: the buffer has the bucket's shape;
    - `state_c3`: the buffer is not on demand and shares no memory;
    - `state_c4`: roles of a bucket are unique.

    Example:

    ```mlir
    zrt.state m of @b0 in @b0.m
    ```
  }];
  let arguments = (ins Zero_NameAttr:$role, FlatSymbolRefAttr:$bucket,
                       FlatSymbolRefAttr:$buffer);
  let assemblyFormat = "custom<Keyword>($role) `of` $bucket `in` $buffer attr-dict";
}

def Zrt_AccumulatorOp : Zrt_UserOp<"accumulator"> {
  let summary = "Where the gradients of a bucket are summed between backward passes";
  let description = [{
    After a backward pass that was begun without a hint, and before the next one, the buffer
    holds the sum of the gradients so far, as they arrived: of each rank, or of all ranks over
    the axes that are not `partial` in its type. With an accumulator of each bucket a
    checkpoint may be saved there. The proof checks that nothing else that is not state has a
    value there that the step needs.

    `prescaled` is that of `zero.backward`: the factor that the gradients arrive with. A
    checkpoint that another number of ranks loads multiplies sums by the quotient of the
    factors.

    Constraints:

    - `accumulator_c1`: bucket and buffer exist;
    - `accumulator_c2`: the buffer has the bucket's shape, and the role `gradient` or
      `accumulator`;
    - `accumulator_c3`: the buffer shares no memory. It may be on demand, so that a step of one
      backward pass has no accumulator;
    - `accumulator_c4`: each bucket of the program has one, or none has;
    - `accumulator_c5`: the symbols of `prescaled` are `accumulation`, `tokens`, `loss_scale`
      and axes of the mesh.

    Example:

    ```mlir
    zrt.accumulator of @b0 in @b0.reduced prescaled(accumulation : -1)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, FlatSymbolRefAttr:$buffer,
                       Zero_ScaleAttr:$prescaled);
  let assemblyFormat = [{
    `of` $bucket `in` $buffer `prescaled` custom<ScaleList>($prescaled) attr-dict
  }];
}

def Zrt_ScalarStateOp : Zrt_UserOp<"scalar_state"> {
  let summary = "A scalar slot that lives across steps";
  let description = [{
    With `changes_on_skip` the scalar may change in a step that is skipped because a gradient
    is not finite, as a loss scale or a schedule does. The proof refuses a program in which any
    other scalar changes.

    Constraints:

    - `scalar_state_c1`: the scalar slot exists;
    - `scalar_state_c2`: roles of scalars are unique.

    Example:

    ```mlir
    zrt.scalar_state "decay.beta1_t" in @decay.counters[0]
    zrt.scalar_state "lr.step" in @lr.counters[0] changes_on_skip
    ```
  }];
  let arguments = (ins Zero_NameAttr:$role, FlatSymbolRefAttr:$slots, I64Attr:$index,
    UnitAttr:$changes_on_skip);
  let assemblyFormat = [{
    $role `in` $slots `[` $index `]` (`changes_on_skip` $changes_on_skip^)?
    attr-dict
  }];
}

#endif // ZRT_TABLE_OPS_TD
