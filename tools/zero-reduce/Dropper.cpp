//===- Dropper.cpp - Takes parts out of a step ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-reduce/Dropper.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace zero;

SmallVector<Part> zero::findParts(ModuleOp module) {
  SmallVector<Part> parts;
  auto append = [&](auto range) {
    for (Operation *op : range)
      parts.push_back({op});
  };
  append(module.getOps<GroupOp>());
  append(module.getOps<BucketOp>());
  append(module.getOps<ParameterOp>());
  module.walk([&](Operation *op) {
    if (auto step = dyn_cast<StepOp>(op)) {
      for (BlockArgument argument : step.getBody().getArguments())
        if (argument != step.getTokens())
          parts.push_back({op, argument.getArgNumber()});
    } else if (auto done = dyn_cast<ReturnOp>(op)) {
      for (size_t i = 0; i < done.getValues().size(); ++i)
        parts.push_back({op, static_cast<int64_t>(i)});
    } else if (isa<ClipOp, NormOp, zrt::TransitionOp, zrt::StoreSlotOp>(op) ||
               (isa_and_present<zrt::HandlerOp>(op->getParentOp()) &&
                isa<zrt::ZrtDialect>(op->getDialect()))) {
      parts.push_back({op});
    }
  });
  append(module.getOps<OptimizerOp>());
  append(module.getOps<ScheduleOp>());
  return parts;
}

Dropper::Dropper(ModuleOp module) : module(module) {
  module.walk([&](Operation *op) {
    op->getAttrDictionary().walk(
        [&](FlatSymbolRefAttr symbol) { users[symbol.getAttr()].insert(op); });
  });
}

bool Dropper::isDropped(Attribute symbol) const {
  auto reference = dyn_cast_if_present<FlatSymbolRefAttr>(symbol);
  return reference && symbols.contains(reference.getAttr());
}

//===----------------------------------------------------------------------===//
// What goes
//===----------------------------------------------------------------------===//

void Dropper::drop(const Part &part) {
  if (erased.contains(part.op))
    return;
  if (auto step = dyn_cast<StepOp>(part.op))
    return dropArgument(step, part.index);
  if (part.index >= 0)
    return dropOperand(part.op->getOpOperand(part.index));
  if (auto clip = dyn_cast<ClipOp>(part.op))
    return bypass(clip);
  if (!isa<GroupOp, BucketOp>(part.op))
    return dropOp(part.op);
  // With its members; nothing else says what becomes of them.
  auto members = part.op->getAttrOfType<ArrayAttr>("members");
  for (auto member : members.getAsRange<FlatSymbolRefAttr>())
    if (Operation *op = module.lookupSymbol(member))
      dropOp(op);
  dropOp(part.op);
}

void Dropper::dropOp(Operation *op) {
  if (!erased.insert(op))
    return;
  op->walk([&](Operation *inner) { erased.insert(inner); });
  for (Value result : op->getResults())
    dropValue(result);
  if (isa<SymbolOpInterface>(op))
    dropSymbol(op);
  if (isa<zrt::RuntimeCall, zrt::BucketTableOp, zrt::StateOp,
          zrt::AccumulatorOp>(op))
    dropBuffers(op);
}

/// What a call works on goes with the bucket that it was for.
void Dropper::dropBuffers(Operation *call) {
  SmallVector<Operation *> buffers;
  bool isForDropped = false;
  call->getAttrDictionary().walk([&](FlatSymbolRefAttr symbol) {
    isForDropped |= isDropped(symbol);
    for (auto program : module.getOps<zrt::ProgramOp>())
      if (auto buffer = program.lookupSymbol<zrt::BufferOp>(symbol))
        buffers.push_back(buffer);
  });
  if (isForDropped)
    for (Operation *buffer : buffers)
      dropOp(buffer);
}

void Dropper::dropSymbol(Operation *op) {
  StringAttr name = SymbolTable::getSymbolName(op);
  symbols.insert(name);
  for (Operation *user : users.lookup(name))
    if (!erased.contains(user))
      dropSymbolUse(user, name);
}

void Dropper::dropSource(BackwardOp backward, StringAttr symbol) {
  for (auto [source, gradient] :
       llvm::zip(backward.getSources(), backward.getGradients()))
    if (source == FlatSymbolRefAttr::get(symbol))
      dropValue(gradient);
  filtered.insert(backward);
}

void Dropper::dropSymbolUse(Operation *user, StringAttr symbol) {
  if (auto backward = dyn_cast<BackwardOp>(user))
    return dropSource(backward, symbol);
  if (auto buffer = dyn_cast<zrt::BufferOp>(user)) {
    buffer.removeSharesAttr(); // of the dropped one's memory
    return;
  }
  if (auto transition = dyn_cast<zrt::TransitionOp>(user);
      transition && isDropped(transition.getSequenceAttr()))
    transition.removeSequenceAttr();
  if (isa<GroupOp, BucketOp, zrt::SequenceOp, zrt::TransitionOp,
          zrt::ProgramOp>(user)) {
    filtered.insert(user);
    // What has nothing left goes, too.
    for (StringRef list : {"members", "buckets"})
      if (auto symbols = user->getAttrOfType<ArrayAttr>(list))
        if (llvm::all_of(symbols,
                         [&](Attribute each) { return isDropped(each); }))
          dropOp(user);
    return;
  }
  dropOp(user);
}

void Dropper::dropValue(Value value) {
  if (!values.insert(value).second)
    return;
  for (OpOperand &use : value.getUses())
    dropOperand(use);
}

void Dropper::dropOperand(OpOperand &use) {
  Operation *op = use.getOwner();
  if (erased.contains(op))
    return;
  unsigned index = use.getOperandNumber();
  llvm::BitVector &dropped = operands[op];
  dropped.resize(op->getNumOperands());
  if (dropped.test(index))
    return;
  dropped.set(index);
  if (auto microBatches = dyn_cast<MicroBatchesOp>(op->getParentOp());
      microBatches && isa<YieldOp>(op))
    return dropValue(microBatches.getSums()[index]);
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return dropValue(reduce.getOutputs()[index]);
  if (auto clip = dyn_cast<ClipOp>(op)) {
    if (index < clip.getInputs().size())
      return dropValue(clip.getOutputs()[index]);
    return bypass(clip);
  }
  if (auto update = dyn_cast<UpdateOp>(op);
      update && index < update.getGradients().size()) {
    if (dropped.find_first_unset_in(0, update.getGradients().size()) < 0)
      dropOp(update);
    return;
  }
  if (isa<UpdateOp, ReturnOp>(op))
    return;
  if (isa<NormOp, SumSquaresOp>(op) && !dropped.all())
    return;
  dropOp(op);
}

void Dropper::bypass(ClipOp clip) {
  if (!erased.insert(clip))
    return;
  for (auto [input, output] :
       llvm::zip_equal(clip.getInputs(), clip.getOutputs())) {
    if (values.contains(output))
      continue;
    output.replaceAllUsesWith(input);
    if (values.contains(input))
      for (OpOperand &use : input.getUses())
        dropOperand(use);
  }
}

/// Hyperparameters that the caller passed become 0.
void Dropper::dropArgument(StepOp step, int64_t index) {
  dropValue(step.getBody().getArgument(index));
}

//===----------------------------------------------------------------------===//
// What remains
//===----------------------------------------------------------------------===//

/// Takes dropped symbols out of the lists of |op|, with what stands beside them
/// in others.
void Dropper::filterSymbols(Operation *op) {
  OpBuilder builder(op);
  auto filter = [&](StringRef list, ArrayRef<StringRef> beside) {
    auto array = op->getAttrOfType<ArrayAttr>(list);
    if (!array)
      return;
    SmallVector<int64_t> kept;
    for (auto [i, symbol] : llvm::enumerate(array))
      if (!isDropped(symbol))
        kept.push_back(i);
    auto select = [&](ArrayRef<Attribute> all) {
      return builder.getArrayAttr(
          llvm::map_to_vector(kept, [&](int64_t i) { return all[i]; }));
    };
    for (StringRef other : beside)
      if (auto array = op->getAttrOfType<ArrayAttr>(other))
        op->setAttr(other, select(array.getValue()));
    op->setAttr(list, select(array.getValue()));
  };
  if (auto bucket = dyn_cast<BucketOp>(op)) {
    // The one before takes the room, or the first that is left.
    SmallVector<int64_t> offsets, extents;
    int64_t begin = 0;
    for (auto [member, offset, extent] : llvm::zip_equal(
             bucket.getMembers(), bucket.getOffsets(), bucket.getExtents())) {
      if (!isDropped(member)) {
        offsets.push_back(begin);
        extents.push_back(0);
      }
      if (offsets.empty())
        continue;
      begin = offset + extent;
      extents.back() = begin - offsets.back();
    }
    bucket.setOffsets(offsets);
    bucket.setExtents(extents);
  }
  filter("members", {});
  filter("sources", {});
  if (isa<zrt::SequenceOp>(op))
    filter("buckets", {"handlers"});
  filter("handlers", {});
  filter("results", {"result_names"});
}

/// |op| without the operands and results that are dropped.
void Dropper::rebuild(Operation *op) {
  if (auto it = operands.find(op); it != operands.end()) {
    llvm::BitVector dropped = it->second;
    if (auto update = dyn_cast<UpdateOp>(op)) {
      // Hyperparameters become constants.
      unsigned first = update.getGradients().size();
      SmallVector<Attribute> names;
      NamedAttrList constants(update.getHyperConstants());
      for (auto [i, name] : llvm::enumerate(update.getHyperNames())) {
        if (dropped.test(first + i))
          constants.set(cast<StringAttr>(name),
                        OpBuilder(op).getF64FloatAttr(0.0));
        else
          names.push_back(name);
      }
      Builder builder(op->getContext());
      update.setHyperNamesAttr(builder.getArrayAttr(names));
      update.setHyperConstantsAttr(constants.getDictionary(op->getContext()));
    } else if (auto done = dyn_cast<ReturnOp>(op)) {
      SmallVector<Attribute> names;
      for (auto [i, name] : llvm::enumerate(done.getNames()))
        if (!dropped.test(i))
          names.push_back(name);
      done.setNamesAttr(Builder(op->getContext()).getArrayAttr(names));
    }
    for (int i = dropped.find_last(); i >= 0; i = dropped.find_prev(i)) {
      if (auto update = dyn_cast<UpdateOp>(op)) {
        int first = update.getGradients().size();
        if (i < first)
          update.getGradientsMutable().erase(i);
        else
          update.getHyperMutable().erase(i - first);
      } else if (auto clip = dyn_cast<ClipOp>(op)) {
        clip.getInputsMutable().erase(i); // without the others it is bypassed
      } else {
        op->eraseOperand(i);
      }
    }
  }
  SmallVector<Value> kept;
  for (Value result : op->getResults())
    if (!values.contains(result))
      kept.push_back(result);
  if (kept.size() == op->getNumResults())
    return;
  OperationState state(op->getLoc(), op->getName(), op->getOperands(),
                       TypeRange(ValueRange(kept)), op->getAttrs());
  for (Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  Operation *smaller = OpBuilder(op).create(state);
  for (auto [old, result] : llvm::zip_equal(kept, smaller->getResults()))
    old.replaceAllUsesWith(result);
  erased.insert(op);
}

/// Numbers that no op takes, and symbols of a program that no op names.
void Dropper::dropUnused() {
  for (bool changed = true; changed;) {
    changed = false;
    module.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
    llvm::DenseSet<Attribute> used;
    module.walk([&](Operation *op) {
      op->getAttrDictionary().walk(
          [&](FlatSymbolRefAttr symbol) { used.insert(symbol.getAttr()); });
    });
    for (auto program : module.getOps<zrt::ProgramOp>())
      for (Operation &op :
           llvm::make_early_inc_range(program.getBody().front()))
        if (isa<SymbolOpInterface>(op) &&
            !used.contains(SymbolTable::getSymbolName(&op))) {
          op.erase();
          changed = true;
        }
  }
}

void Dropper::finish() {
  for (Operation *op : filtered)
    if (!erased.contains(op))
      filterSymbols(op);
  SmallVector<Operation *> kept;
  module.walk([&](Operation *op) {
    if (!erased.contains(op) && op != module)
      kept.push_back(op);
  });
  for (Operation *op : kept)
    rebuild(op);
  SmallVector<BlockArgument> arguments;
  for (auto step : module.getOps<StepOp>())
    for (BlockArgument argument : step.getBody().getArguments())
      if (values.contains(argument))
        arguments.push_back(argument);
  // An op goes with the ops in it.
  SmallVector<Operation *> gone;
  llvm::copy_if(erased, std::back_inserter(gone), [&](Operation *op) {
    Operation *outer = op->getParentOp();
    while (outer && !erased.contains(outer))
      outer = outer->getParentOp();
    return !outer;
  });
  for (Operation *op : gone) {
    op->dropAllUses();
    op->dropAllReferences();
  }
  for (BlockArgument argument : llvm::reverse(arguments)) {
    argument.dropAllUses();
    auto step = cast<StepOp>(argument.getOwner()->getParentOp());
    int64_t number = argument.getArgNumber();
    if (ArrayAttr names = step.getArgumentNamesAttr()) {
      SmallVector<Attribute> left(names.getValue());
      left.erase(left.begin() + number);
      step.setArgumentNamesAttr(ArrayAttr::get(step.getContext(), left));
    }
    if (auto tokens = step.getTokensArgument();
        tokens && int64_t(*tokens) > number)
      step.setTokensArgument(int64_t(*tokens) - 1);
    argument.getOwner()->eraseArgument(number);
  }
  for (Operation *op : gone)
    op->erase();
  dropUnused();
}
