//===- SymbolOps.td - Symbols that a step names ------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SYMBOL_OPS_TD
#define ZERO_SYMBOL_OPS_TD

include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "dialect/zero/ZeroTypes.td"

/// `InferTypeOpAdaptor` for ops of values. A parser infers types before a verifier
/// has seen the operands, so the adaptor checks the operands first.
def Zero_InferTypes : TraitList<[
  DeclareOpInterfaceMethods<InferTypeOpInterface>,
  NativeOpTrait<"InferTypeOpAdaptor", [], /*extraOpDeclaration=*/[{
    static ::llvm::LogicalResult
    inferReturnTypes(::mlir::MLIRContext *context,
                     std::optional<::mlir::Location> location, Adaptor adaptor,
                     ::llvm::SmallVectorImpl<::mlir::Type> &inferred);
  }], /*extraOpDefinition=*/[{
    ::llvm::LogicalResult
    $cppClass::inferReturnTypes(::mlir::MLIRContext *context,
                                std::optional<::mlir::Location> location,
                                ::mlir::ValueRange operands,
                                ::mlir::DictionaryAttr attributes,
                                ::mlir::OpaqueProperties properties,
                                ::mlir::RegionRange regions,
                                ::llvm::SmallVectorImpl<::mlir::Type> &inferred) {
      for (::mlir::Type type : operands.getTypes())
        if (!::llvm::isa<::zero::ValueType>(type))
          return ::mlir::emitOptionalError(
              location, "'", getOperationName(),
              "' op operand must be a !zero.value, got ", type);
      return $cppClass::inferReturnTypes(
          context, location,
          Adaptor(operands, attributes, properties, regions), inferred);
    }
  }]>
]>;

/// Infers its result types; the text spells operand types only.
class Zero_InferredOp<string mnemonic, list<Trait> traits = []>
    : Zero_Op<mnemonic, traits # [Zero_InferTypes]>;

def Zero_MeshOp : Zero_Op<"mesh", [Symbol]> {
  let summary = "A mesh of ranks with named axes";
  let description = [{
    Ranks are numbered row-major over the axes: the last axis varies fastest. A flattened axis
    is a name for several axes together. A step may use this name for these axes. Exception:
    `on = [...]` of a pipeline stage and `zero.activation` name an axis itself.

    Constraints:

    - `mesh_c1`: an axis has a size of at least 1; there are at most 32 axes and 2^20 ranks;
    - `mesh_c2`: names of axes and flattened axes are unique, and are not `micro`,
      `accumulation`, `tokens` or `loss_scale`;
    - `mesh_c3`: a flattened axis lists axes of this mesh, each once and in the order of the
      mesh.

    Example:

    ```mlir
    zero.mesh @cluster <["pp" = 1, "edp" = 2, "ep" = 2]> flattened ["dp" = ["edp", "ep"]]
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, Zero_MeshAxisArrayAttr:$axes,
                       Zero_FlattenedAxesArrayAttr:$flattened);
  let assemblyFormat = [{
    $sym_name `<` custom<MeshAxes>($axes) `>`
    custom<FlattenedAxesList>($flattened) attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The size of an axis, or nothing if there is no such axis.
    std::optional<int64_t> getAxisSize(::llvm::StringRef axis);
    /// The number of ranks.
    int64_t getNumRanks();
    /// The number of ranks that differ over |axes| only; 1 for those that the
    /// mesh does not have.
    int64_t getNumRanks(::llvm::ArrayRef<::mlir::StringAttr> axes);
    /// The elements that a rank holds of a value of |type|.
    int64_t getNumHeld(::zero::ValueType type);
    /// The axes that |name| stands for: itself, or those of a flattened axis.
    std::optional<::llvm::SmallVector<::mlir::StringAttr>>
    findAxes(::mlir::StringAttr name);
    /// |type| without flattened axes. Fails if an axis is named twice.
    ::mlir::FailureOr<::zero::ValueType>
    expandFlattened(::zero::ValueType type,
                ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError);
    ::zero::Scale expandFlattened(::llvm::ArrayRef<::zero::ScaleFactor> scale);
    /// |axes| in the order of the mesh.
    ::llvm::SmallVector<::mlir::StringAttr>
    sortAxes(::llvm::ArrayRef<::mlir::StringAttr> axes);
  }];
}

def Zero_ParameterOp : Zero_Op<"parameter", [Symbol]> {
  let summary = "A trainable parameter: its shape, storage type and placement";
  let description = [{
    The shape is global. `sharded = [tp]` says that each rank holds a slice, as with tensor or
    expert parallelism. Over an axis that is not listed, every rank holds a replica. The type
    of `zero.backward` says how the gradient arrives over such an axis: as an addend or
    replicated. Slices of master weights and optimizer state, and their owners, are derived.
    `on = [pp : 2]` says that only the ranks of this pipeline stage hold the parameter.

    `optional` says that a backward pass may produce no gradient for the parameter. A gradient
    that does not arrive then counts as zero. Without `optional` a missing gradient refuses the
    step. `uses 2` says that each backward pass delivers the gradient in two pieces. The pieces
    are added. `uses any` says that the number of pieces is not known, as with re-entrant
    activation checkpointing. Then the gradient is complete when the backward pass ends. So
    such parameters have buckets of their own, and memory of their own for their gradients.

    `frozen` says that the parameter is not trained. At stage 3 a frozen parameter of a unit is
    sharded and gathered with the unit. Any other frozen parameter counts in the bytes of the
    plan and nowhere else. The compiled step does not know it, and the caller keeps it. It need
    not be declared. If the gradient of a parameter that is not frozen arrives nowhere, this is
    an error.

    Constraints:

    - `parameter_c1`: the parameter is replicated or sharded, not reduced, unscaled, and on
      the device;
    - `parameter_c2`: `uses` is at least 1 and at most 1024, or `any`;
    - `parameter_c3`: a frozen parameter is not `optional` and has no `uses`;
    - `parameter_c4`: no `zero.backward`, `zero.group` or `zero.bucket` names a frozen
      parameter.

    Example:

    ```mlir
    zero.parameter @fc1.weight : 64x64xbf16
    zero.parameter @expert.7 : 128xf32 optional
    zero.parameter @block.3 : 64x64xbf16 uses any
    zero.parameter @embedding : 512x64xbf16 frozen
    zero.parameter @qkv : 64x192xbf16, sharded = [tp : 1]
    zero.parameter @head : 96x64xbf16, on = [pp : 2]
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name,
                       TypeAttrOf<Zero_ValueType>:$type, UnitAttr:$optional,
                       UnitAttr:$frozen,
                       DefaultValuedOptionalAttr<I64Attr, "1">:$uses);
  let assemblyFormat = [{
    $sym_name `:` custom<PlacedType>($type)
    (`optional` $optional^)? (`frozen` $frozen^)? (`uses` custom<Uses>($uses)^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::zero::ValueType getValueType() {
      return ::llvm::cast<::zero::ValueType>(getType());
    }
    ::llvm::ArrayRef<int64_t> getShape() { return getValueType().getShape(); }
    ::mlir::Type getDtype() { return getValueType().getElementType(); }
    /// The number of uses that stands for `any`.
    static constexpr int64_t kAnyUses = 0;
    bool isUsedAnyTimes() { return getUses() == kAnyUses; }
    /// No op names a frozen parameter, and yet the plan lists it.
    bool canDiscardOnUseEmpty() { return !getFrozen() && isPrivate(); }
    /// The elements of the whole parameter.
    int64_t getNumElements() { return getValueType().getNumElements(); }
  }];
}

def Zero_GroupOp : Zero_Op<"group",
    [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A parameter group: parameters that share hyperparameters";
  let description = [{
    `absent skip` says that a step leaves the group as it is if none of its gradients arrived
    in any backward pass on any rank: parameters, state and counters do not change, and there
    is no weight decay. So does PyTorch with parameters that have no gradient; a group of one
    parameter has exactly this rule. If one gradient of the group arrived, the others count as
    zeros.

    Constraints:

    - `group_c1`: every member is a `zero.parameter`, listed once;
    - `group_c2`: a group with `absent skip` has a member; its members are `optional`, and
      members of no other group.

    Example:

    ```mlir
    zero.group @decay [@fc1.weight, @fc2.weight]
    zero.group @head [@head.weight] absent skip
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, FlatSymbolRefArrayAttr:$members,
    UnitAttr:$skips_absent);
  let assemblyFormat = "$sym_name $members (`absent` `skip` $skips_absent^)? attr-dict";
}

def Zero_UnitOp : Zero_Op<"unit",
    [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Parameters that are gathered and released together at ZeRO stage 3";
  let description = [{
    At stage 3 each rank keeps a slice of the parameters of a unit. The caller unshards the
    unit before it uses the parameters in the forward or backward pass, and reshards it after.
    Parameters of no unit are whole on each rank, as at stage 2. At other stages units only
    say which parameters share buckets. Equivalent to: the parameters of one `fully_shard`
    call of FSDP2.

    Two units that follow each other can be unsharded at once: others share their memory. A
    unit that is `kept` has memory of its own, so a caller may leave it unsharded from the
    forward pass to the backward pass. It is gathered once then, and not twice.

    `gather_dtype bf16` names the type in which parameters travel when the unit is unsharded.
    Each is rounded to it once, and the caller reads the rounded number in the parameter's own
    type. The slices that ranks keep, which updates read and checkpoints save, are not rounded.
    At other stages nothing is gathered for the caller, and nothing is rounded.

    Constraints:

    - `unit_c1`: a unit has members; every member is a `zero.parameter`, listed once, and
      member of no other unit;
    - `unit_c2`: all members are on the same pipeline stages. Reason: a unit is gathered as a
      whole, by the ranks that use it;
    - `unit_c3`: `gather_dtype` is a type that memory may hold, and the type of each member holds
      every number of it. Types of 8 bits, such as f8E4M3FN, have their place here and are
      refused: they need a scale for each parameter, which nothing computes.

    Example:

    ```mlir
    zero.unit @layer0 [@fc1.weight, @fc1.bias]
    zero.unit @layer1 [@fc2.weight, @fc2.bias] gather_dtype bf16 kept
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, FlatSymbolRefArrayAttr:$members,
                       OptionalAttr<TypeAttr>:$gather_dtype, UnitAttr:$kept);
  let assemblyFormat = [{
    $sym_name $members (`gather_dtype` $gather_dtype^)? (`kept` $kept^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// A `zrt.program` names the unit from a symbol table of its own.
    bool canDiscardOnUseEmpty() { return false; }
    /// A type on the pipeline stages of all members. Null if there is none.
    ::zero::ValueType getPlace(::mlir::SymbolTableCollection &symbols);
    /// The type in which parameters of |type| travel when the unit is unsharded.
    ::mlir::Type getTypeToGather(::mlir::Type type) {
      return getGatherDtype().value_or(type);
    }
  }];
}

def Zero_UnitOrderOp : Zero_Op<"unit_order",
    [HasParent<"::mlir::ModuleOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "An order in which the caller unshards units at ZeRO stage 3";
  let description = [{
    A forward pass and a backward pass unshard each unit once, in an order of the module. The
    order that begins is the one whose first unit is unsharded first. The compiled step then
    gathers the next units of the order while one is in use, without a call of the caller, and
    another unit is an error that names both. `prefetch` says how many units are gathered ahead,
    1 by default, and each of them has memory beside that of the unit in use. Units that are
    unsharded already, as `kept` units are in a backward pass, are passed over. An order that
    has begun goes on to its end, except where its first unit begins it anew, and where the
    step is applied or discarded. An order that has begun in a backward pass ends with it, or
    where another order begins.

    In a module without an order the caller may use units in any order, and calls `prefetch`
    itself. At other stages than 3 an order has no effect.

    Constraints:

    - `unit_order_c1`: an order lists each unit of the module once, and nothing else;
    - `unit_order_c2`: no two orders begin with the same unit, on any pipeline stage, unless they
      are the same there. On a pipeline stage an order is that of the units of the stage;
    - `unit_order_c3`: `prefetch` is at least 0.

    Example:

    ```mlir
    zero.unit_order [@layer0, @layer1, @layer2]
    zero.unit_order [@layer2, @layer1, @layer0] prefetch 2
    ```
  }];
  let arguments = (ins FlatSymbolRefArrayAttr:$units,
                       DefaultValuedAttr<I64Attr, "1">:$prefetch);
  let assemblyFormat = "$units (`prefetch` $prefetch^)? attr-dict";
}

def Zero_OptimizerOp : Zero_Op<"optimizer", [Symbol, IsolatedFromAbove]> {
  let summary = "An element-wise optimizer, as data";
  let description = [{
    `prepare` runs once per applied step and parameter group, in f64. It takes the
    hyperparameters and the counters. It yields the next values of the counters and the scalars
    that the update needs. Counters advance on applied steps only.

    `update` runs once per element. It takes the gradient, the master weight, the state and the
    scalars of `prepare`. It yields the new master weight and the new state. State starts at
    zero.

    Bodies use `arith` and `math` ops. A target may support fewer of them: the CPU has no `exp`
    or `pow` yet. A multiplication and an addition are contracted only as `math.fma`.

    Constraints:

    - `optimizer_c1`: `prepare` takes one f64 per hyperparameter and counter, and yields f64s,
      at least one per counter;
    - `optimizer_c2`: `update` takes the gradient, the master weight, one value per state, and
      one value per scalar that `prepare` yields after the counters; gradient, master weight
      and scalars have one type, f32 or f64;
    - `optimizer_c3`: `update` yields the master weight and each state, in their types;
    - `optimizer_c4`: bodies hold only `arith` and `math` ops and `zero.yield`;
    - `optimizer_c5`: names of hyperparameters, counters and states are unique and
      not empty;
    - `optimizer_c6`: no state is called `parameter` or `master`;
    - `optimizer_c7`: `prepare` computes in f64.

    Example:

    ```mlir
    zero.optimizer @sgd hyper [lr] {
    ^prepare(%lr: f64):
      %step = arith.negf %lr : f64
      zero.yield %step : f64
    } update {
    ^update(%g: f32, %p: f32, %step: f32):
      %p1 = math.fma %g, %step, %p : f32
      zero.yield %p1 : f32
    }
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name,
    Zero_NameArrayAttr:$hyper_names, DictionaryAttr:$hyper_defaults,
    Zero_NameArrayAttr:$counter_names, DenseF64ArrayAttr:$counter_initial,
    Zero_NameArrayAttr:$state_names);
  let regions = (region SizedRegion<1>:$prepare, SizedRegion<1>:$update);
  let assemblyFormat = [{
    $sym_name `hyper` custom<HyperNames>($hyper_names, $hyper_defaults)
    custom<Counters>($counter_names, $counter_initial)
    custom<StateNames>($state_names) attr-dict-with-keyword
    custom<OwnNames>($prepare) `update` custom<OwnNames>($update)
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The number of scalars that `prepare` yields after the counters.
    unsigned getNumScalars();
    /// The type of master and arithmetic.
    ::mlir::Type getMasterType();
    ::llvm::SmallVector<::mlir::Type> getStateTypes();
  }];
}

#endif // ZERO_SYMBOL_OPS_TD
