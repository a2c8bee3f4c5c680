//===- Protocol.cpp - Buffers of a bucket and when they are used ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Protocol.h"

using namespace mlir;
using namespace zero;
using zrt::Event;
using zrt::Role;

void zero::declareBucket(ProgramBuilder &program, BucketBuffers &bucket) {
  StringRef name = bucket.op.getSymName();
  Type master = bucket.optimizer.getMasterType();
  bucket.gradient =
      program.buffer(name + ".gradient", bucket.gradientType, Role::gradient);
  if (bucket.reducedType)
    bucket.reduced =
        program.buffer(name + ".reduced", bucket.reducedType, Role::gradient);
  ValueType full = ValueType::getSorted(
      master.getContext(), bucket.op.getShape(), bucket.storageType);
  bucket.parameters =
      program.buffer(name + ".parameters", full, Role::parameter);
  bucket.master = bucket.parameters;
  if (master != bucket.storageType || bucket.isOffloaded())
    bucket.master =
        program.buffer(name + ".master",
                       bucket.ownedType.withElementType(master), Role::state);
  if (master != bucket.storageType && bucket.isOffloaded())
    bucket.staged = program.buffer(
        name + ".staged", bucket.ownedType.withElementType(bucket.storageType),
        Role::parameter);

  OpBuilder &builder = program.getBuilder();
  Location loc = bucket.op.getLoc();
  auto symbol = FlatSymbolRefAttr::get(bucket.op);
  auto addState = [&](StringRef role, FlatSymbolRefAttr buffer) {
    builder.create<zrt::StateOp>(loc, builder.getStringAttr(role), symbol,
                                 buffer);
  };
  addState("parameter", bucket.parameters);
  // A master of the parameters' own type is a copy of them, and no state.
  if (master != bucket.storageType)
    addState("master", bucket.master);
  for (auto [state, type] : llvm::zip_equal(
           bucket.optimizer.getStateNames().getAsRange<StringAttr>(),
           bucket.optimizer.getStateTypes())) {
    FlatSymbolRefAttr buffer =
        program.buffer(name + "." + state.getValue(),
                       bucket.ownedType.withElementType(type), Role::state);
    bucket.states.push_back(buffer);
    addState(state, buffer);
  }
  bucket.whole =
      program.segments(name + ".whole", {bucket.op.getNumElements()});

  Type arrival = bucket.op.getArrivalType();
  Type kept = bucket.op.getDtype();
  builder.create<zrt::ArrivalsOp>(
      loc, symbol, bucket.gradient, program.storeKernel(arrival, kept),
      program.addKernel(arrival, kept), bucket.parameters,
      bucket.master != bucket.parameters ? bucket.master : FlatSymbolRefAttr(),
      bucket.staged);
}

/// Buckets whose reduction is in the loop store each backward; the others add
/// to what the first one left.
void zero::buildProtocol(ProgramBuilder &program,
                         llvm::MapVector<StringAttr, BucketBuffers> &buckets,
                         FlatSymbolRefAttr finish) {
  bool inLoop = buckets.front().second.reducedInLoop;
  OpBuilder &builder = program.getBuilder();

  zrt::HandlerOp store = program.handler("arrive_first");
  HandlerBuilder(store).call<zrt::PackOp>(/*accumulate=*/false);
  zrt::HandlerOp add = program.handler("arrive_next");
  HandlerBuilder(add).call<zrt::PackOp>(/*accumulate=*/!inLoop);

  zrt::HandlerOp closeFirst = program.handler("close_first");
  zrt::HandlerOp beginNext = program.handler("begin_next");
  zrt::HandlerOp closeNext = program.handler("close_next");
  zrt::HandlerOp reset = program.handler("reset");
  HandlerBuilder first(closeFirst);
  HandlerBuilder begin(beginNext);
  HandlerBuilder next(closeNext);
  HandlerBuilder back(reset);
  MLIRContext *context = builder.getContext();
  for (auto &[name, bucket] : buckets) {
    auto symbol = FlatSymbolRefAttr::get(bucket.op);
    // What did not arrive counts as zero. Later on a missing gradient adds
    // nothing, unless each backward is stored.
    first.call<zrt::FillMissingOp>(symbol);
    if (inLoop) {
      first.call<zrt::ReduceScatterOp>(bucket.gradient, bucket.reduced);
      next.call<zrt::FillMissingOp>(symbol);
      next.call<zrt::ReduceScatterAddOp>(bucket.gradient, bucket.reduced);
    }
    // From the second backward on the buffer outlives the one that wrote it.
    begin.call<zrt::RetagOp>(bucket.getAccumulator(),
                             zrt::RoleAttr::get(context, Role::accumulator));
    back.call<zrt::RetagOp>(bucket.getAccumulator(),
                            zrt::RoleAttr::get(context, Role::gradient));
  }

  auto transition = [&](StringRef state, Event event, StringRef target,
                        ArrayRef<zrt::HandlerOp> handlers,
                        FlatSymbolRefAttr last = {}) {
    SmallVector<Attribute> symbols;
    for (zrt::HandlerOp handler : handlers)
      symbols.push_back(FlatSymbolRefAttr::get(handler));
    if (last) {
      symbols.push_back(last);
      symbols.push_back(FlatSymbolRefAttr::get(reset));
    }
    builder.create<zrt::TransitionOp>(
        reset.getLoc(), builder.getStringAttr(state),
        zrt::EventAttr::get(context, event), builder.getStringAttr(target),
        builder.getArrayAttr(symbols));
  };
  transition("idle", Event::begin, "first", {});
  transition("first", Event::arrive, "first", {store});
  transition("first", Event::accumulate, "between", {closeFirst});
  transition("first", Event::apply, "idle", {closeFirst}, finish);
  transition("first", Event::discard, "idle", {});
  transition("between", Event::begin, "next", {beginNext});
  transition("between", Event::apply, "idle", {}, finish);
  transition("between", Event::discard, "idle", {reset});
  transition("next", Event::arrive, "next", {add});
  transition("next", Event::accumulate, "between", {closeNext});
  transition("next", Event::apply, "idle", {closeNext}, finish);
  transition("next", Event::discard, "idle", {reset});
}
