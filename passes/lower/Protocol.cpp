//===- Protocol.cpp - Buffers of a bucket and when they are used ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Protocol.h"

#include "passes/lower/Units.h"

using namespace mlir;
using namespace zero;
using zrt::Event;
using zrt::Role;

void zero::declareBucket(ProgramBuilder &program, BucketBuffers &bucket) {
  StringRef name = bucket.op.getSymName();
  Type master = bucket.optimizer.getMasterType();
  bucket.gradient =
      program.buffer(name + ".gradient", bucket.gradientType, Role::gradient);
  if (bucket.reduceDtype)
    bucket.reduceBuffer = program.buffer(
        name + ".wire", bucket.gradientType.withElementType(bucket.reduceDtype),
        Role::gradient);
  if (bucket.reducedType)
    bucket.reduced =
        program.buffer(name + ".reduced", bucket.reducedType, Role::gradient);
  bucket.parameters =
      program.buffer(name + ".parameters", bucket.keptType, Role::parameter);
  if (bucket.keepsSlices())
    bucket.unsharded = declareUnsharded(program, bucket);
  bucket.master = bucket.parameters;
  bool copiesBack = bucket.isOffloaded() && !bucket.keptType.isOnHost();
  if (master != bucket.storageType || copiesBack)
    bucket.master =
        program.buffer(name + ".master",
                       bucket.ownedType.withElementType(master), Role::state);
  if (master != bucket.storageType && copiesBack)
    bucket.staging = program.buffer(
        name + ".staging", bucket.ownedType.withElementType(bucket.storageType),
        Role::parameter);

  OpBuilder &builder = program.getBuilder();
  Location loc = bucket.op.getLoc();
  auto symbol = FlatSymbolRefAttr::get(bucket.op);
  auto addState = [&](StringRef role, FlatSymbolRefAttr buffer) {
    builder.create<zrt::StateOp>(loc, builder.getStringAttr(role), symbol,
                                 buffer);
  };
  addState("parameter", bucket.parameters);
  // If master weights have the type of the parameters, they are a copy of the
  // parameters on the host and no state.
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
  bucket.whole = program.segments(name + ".whole", {bucket.op.getRowLength()});

  Type arrival = bucket.op.getArrivalType();
  Type kept = bucket.gradientType.getElementType();
  builder.create<zrt::BucketTableOp>(
      loc, symbol, bucket.gradient, program.storeKernel(arrival, kept),
      program.addKernel(arrival, kept), bucket.parameters,
      bucket.master != bucket.parameters ? bucket.master : FlatSymbolRefAttr(),
      bucket.staging, bucket.unsharded, /*writable=*/ArrayAttr(),
      /*readable=*/ArrayAttr());
}

/// The number of buckets that are open at once if each bucket is reduced in the
/// loop: one bucket is filled while the previous one waits for its last
/// gradients.
static constexpr int64_t kOpenBuckets = 2;

/// Gives buffers of buckets that are never in use together one memory, as large
/// as the largest of them. These buffers are gradients, of which |kOpenBuckets|
/// are open, or copies in the reduce dtype. Each pipeline stage has memory of
/// its own. A gradient that is open to the end of the backward pass has its own
/// memory, so that no gradient waits for it.
static void shareMemory(ProgramBuilder &program, BucketMap &buckets,
                        FlatSymbolRefAttr BucketBuffers::*buffer) {
  struct Ring {
    ArrayRef<AxisCoordinate> stages;
    zrt::BufferOp owners[kOpenBuckets];
    int64_t next = 0;
  };
  SmallVector<Ring> rings;
  auto forEach = [&](auto &&function) {
    for (Ring &ring : rings)
      ring.next = 0;
    for (auto &bucket : llvm::make_second_range(buckets)) {
      bool isGradient = buffer == &BucketBuffers::gradient;
      if (!(bucket.*buffer) || (isGradient && bucket.isOpenToTheEnd))
        continue;
      ArrayRef<AxisCoordinate> stages = bucket.gradientType.getPresent();
      auto *ring = llvm::find_if(
          rings, [&](const Ring &ring) { return ring.stages == stages; });
      if (ring == rings.end()) {
        rings.emplace_back().stages = stages;
        ring = &rings.back();
      }
      function(program.getBuffer(bucket.*buffer),
               ring->owners[ring->next++ % kOpenBuckets]);
    }
  };
  forEach([](zrt::BufferOp buffer, zrt::BufferOp &owner) {
    if (!owner || buffer.getNumBytes() > owner.getNumBytes())
      owner = buffer;
  });
  forEach([](zrt::BufferOp buffer, zrt::BufferOp &owner) {
    if (buffer != owner)
      buffer.setSharesAttr(FlatSymbolRefAttr::get(owner));
  });
}

FlatSymbolRefAttr zero::prepareAddends(ProgramBuilder &program,
                                       HandlerBuilder &calls,
                                       const BucketBuffers &bucket) {
  if (!bucket.reduceBuffer)
    return bucket.gradient;
  // Behind the loop the memory of the gradient may be that of another bucket.
  FlatSymbolRefAttr addends =
      bucket.scatterAxes ? bucket.gradient : bucket.getAccumulator();
  calls.call<zrt::LaunchOp>(
      program.storeKernel(bucket.gradientType.getElementType(),
                          bucket.reduceDtype),
      program.getBuilder().getArrayAttr({addends, bucket.reduceBuffer}),
      bucket.whole, /*own=*/ArrayAttr(), /*sum=*/FlatSymbolRefAttr(),
      /*sum_index=*/IntegerAttr(), /*first_stage=*/UnitAttr());
  return bucket.reduceBuffer;
}

/// Calls all |sums| of |bucket|.
static void emitSums(ProgramBuilder &program, HandlerBuilder &calls,
                     const BucketBuffers &bucket) {
  FlatSymbolRefAttr buffer = bucket.gradient;
  for (const GradientSum &sum : bucket.sums) {
    calls.setLoc(sum.loc);
    if (!sum.scatters) {
      calls.call<zrt::AllReduceOp>(buffer, FlatSymbolRefAttr(), sum.axes);
      continue;
    }
    calls.call<zrt::ReduceScatterOp>(prepareAddends(program, calls, bucket),
                                     bucket.reduced, sum.axes);
    buffer = bucket.reduced;
  }
}

/// Reverts the sums of |bucket| that are in place: from here on the sum is an
/// addend, like the gradients of later backward passes. A sum that was
/// scattered needs no call, since its addends still exist.
static void emitUnreduce(ProgramBuilder &program, HandlerBuilder &calls,
                         const BucketBuffers &bucket) {
  SmallVector<Attribute> axes;
  for (const GradientSum &sum : bucket.sums) {
    if (sum.scatters)
      break;
    llvm::append_range(axes, sum.axes);
  }
  if (!axes.empty())
    calls.call<zrt::KeepOnRootOp>(bucket.gradient,
                                  program.getBuilder().getArrayAttr(axes));
}

using CloseBucket = llvm::function_ref<void(HandlerBuilder &, BucketBuffers &,
                                            FlatSymbolRefAttr symbol)>;

/// Creates a sequence that closes buckets one by one. |close| fills the handler
/// of each bucket.
static FlatSymbolRefAttr buildSequence(ProgramBuilder &program,
                                       BucketMap &buckets, StringRef name,
                                       CloseBucket close) {
  SmallVector<Attribute> symbols, handlers;
  for (auto &[bucketName, bucket] : buckets) {
    symbols.push_back(FlatSymbolRefAttr::get(bucket.op));
    program.setLoc(bucket.op.getLoc());
    zrt::HandlerOp handler =
        program.handler(bucketName.getValue() + ".close_" + name);
    handlers.push_back(FlatSymbolRefAttr::get(handler));
    HandlerBuilder calls(handler);
    close(calls, bucket, cast<FlatSymbolRefAttr>(symbols.back()));
  }
  return program.sequence(name, symbols, handlers);
}

/// Zeroes the gradients that did not arrive, and then sums over the ranks into
/// this rank's slice of the bucket by |ReduceT|. A bucket without axes to
/// scatter over is stored or added by the kernel |sum|.
template <typename ReduceT>
static FlatSymbolRefAttr
buildLoopSequence(ProgramBuilder &program, BucketMap &buckets, StringRef name,
                  FlatSymbolRefAttr (ProgramBuilder::*sum)(Type, Type)) {
  auto close = [&](HandlerBuilder &calls, BucketBuffers &bucket,
                   FlatSymbolRefAttr symbol) {
    calls.call<zrt::FillMissingOp>(symbol);
    if (bucket.scatterAxes) {
      calls.setLoc(bucket.scatterLoc);
      calls.call<ReduceT>(prepareAddends(program, calls, bucket),
                          bucket.reduced, bucket.scatterAxes);
      return;
    }
    Type kept = bucket.gradientType.getElementType();
    calls.call<zrt::LaunchOp>(
        (program.*sum)(kept, kept),
        program.getBuilder().getArrayAttr({bucket.gradient, bucket.reduced}),
        bucket.whole, /*own=*/ArrayAttr(), /*sum=*/FlatSymbolRefAttr(),
        /*sum_index=*/IntegerAttr(), /*first_stage=*/UnitAttr());
  };
  return buildSequence(program, buckets, name, close);
}

namespace {
/// Builds the automaton of one program.
class ProtocolBuilder {
public:
  ProtocolBuilder(ProgramBuilder &program, BucketMap &buckets,
                  const ApplyHandlers &ends, bool hasUnits)
      : program(program), buckets(buckets), ends(ends), hasUnits(hasUnits) {}

  void build(bool oneBackward);

private:
  using Handlers = SmallVector<FlatSymbolRefAttr>;

  FlatSymbolRefAttr
  handler(StringRef name,
          llvm::function_ref<void(HandlerBuilder &, BucketBuffers &)> each);
  FlatSymbolRefAttr packHandler(StringRef name, bool accumulate);
  FlatSymbolRefAttr buildOnlySequence(StringRef name);
  void buildRoleChanges();
  void buildOneBackward();
  void buildSummedInLoop();
  void buildSummedAtApply();
  void transition(StringRef state, Event event, StringRef target,
                  const Handlers &handlers, FlatSymbolRefAttr sequence = {});
  void end(StringRef state, Handlers close, FlatSymbolRefAttr sequence = {});
  Handlers getReset() const { return reset ? Handlers{reset} : Handlers(); }

  ProgramBuilder &program;
  BucketMap &buckets;
  const ApplyHandlers &ends;
  const bool hasUnits;
  FlatSymbolRefAttr beginNext; // the buffer outlives its backward pass
  FlatSymbolRefAttr reset;     // null if no buffer does
};
} // namespace

FlatSymbolRefAttr ProtocolBuilder::handler(
    StringRef name,
    llvm::function_ref<void(HandlerBuilder &, BucketBuffers &)> each) {
  zrt::HandlerOp op = program.handler(name);
  HandlerBuilder calls(op);
  for (auto &bucket : llvm::make_second_range(buckets)) {
    calls.setLoc(bucket.op.getLoc());
    each(calls, bucket);
  }
  return FlatSymbolRefAttr::get(op);
}

FlatSymbolRefAttr ProtocolBuilder::packHandler(StringRef name,
                                               bool accumulate) {
  zrt::HandlerOp op = program.handler(name);
  HandlerBuilder(op).call<zrt::PackOp>(accumulate);
  return FlatSymbolRefAttr::get(op);
}

/// Closes and sums the buckets of an only backward pass.
FlatSymbolRefAttr ProtocolBuilder::buildOnlySequence(StringRef name) {
  return buildSequence(
      program, buckets, name,
      [&](HandlerBuilder &calls, BucketBuffers &bucket, auto symbol) {
        calls.call<zrt::FillMissingOp>(symbol);
        emitSums(program, calls, bucket);
      });
}

void ProtocolBuilder::transition(StringRef state, Event event, StringRef target,
                                 const Handlers &handlers,
                                 FlatSymbolRefAttr sequence) {
  OpBuilder &builder = program.getBuilder();
  SmallVector<Attribute> symbols(handlers.begin(), handlers.end());
  builder.create<zrt::TransitionOp>(
      buckets.front().second.op.getLoc(), builder.getStringAttr(state),
      zrt::EventAttr::get(builder.getContext(), event),
      builder.getStringAttr(target), builder.getArrayAttr(symbols), sequence);
}

/// The transitions of |state| that end the backward passes: at once, or with a
/// pause before parameters change. |close| takes what sums are left.
void ProtocolBuilder::end(StringRef state, Handlers close,
                          FlatSymbolRefAttr sequence) {
  close.push_back(ends.measure);
  Handlers measure = close, apply = close;
  measure.push_back(ends.commit);
  apply.append({ends.update, ends.commit});
  llvm::append_range(apply, getReset());
  transition(state, Event::apply, "idle", apply, sequence);
  transition(state, Event::measure, "measured", measure, sequence);
}

void ProtocolBuilder::buildRoleChanges() {
  auto setRoleTo = [&](Role role) {
    return [&, role](HandlerBuilder &calls, BucketBuffers &bucket) {
      calls.call<zrt::SetRoleOp>(
          bucket.getAccumulator(),
          zrt::RoleAttr::get(program.getBuilder().getContext(), role));
    };
  };
  for (auto &bucket : llvm::make_second_range(buckets))
    program.getBuilder().create<zrt::AccumulatorOp>(
        bucket.op.getLoc(), FlatSymbolRefAttr::get(bucket.op),
        bucket.getAccumulator(), bucket.prescaled);
  beginNext = handler("begin_next", setRoleTo(Role::accumulator));
  reset = handler("reset", setRoleTo(Role::gradient));
}

/// The gradients of the one backward pass are stored, and each bucket is
/// reduced when it is complete.
void ProtocolBuilder::buildOneBackward() {
  FlatSymbolRefAttr store = packHandler("arrive", /*accumulate=*/false);
  FlatSymbolRefAttr close;
  if (buckets.front().second.summedInLoop) {
    shareMemory(program, buckets, &BucketBuffers::gradient);
    close = buildLoopSequence<zrt::ReduceScatterOp>(
        program, buckets, "first", &ProgramBuilder::storeKernel);
  } else {
    close = buildOnlySequence("first");
  }
  transition("idle", Event::begin, "first", {});
  transition("first", Event::arrive, "first", {store}, close);
  transition("first", Event::accumulate, "closed", {}, close);
  end("first", {}, close);
  transition("first", Event::discard, "idle", {}, close);
  end("closed", {});
  transition("closed", Event::discard, "idle", {});
}

/// Each backward pass stores gradients, and reduces each bucket when it is
/// complete.
void ProtocolBuilder::buildSummedInLoop() {
  FlatSymbolRefAttr store = packHandler("arrive_first", /*accumulate=*/false);
  FlatSymbolRefAttr storeNext = packHandler("arrive_next", false);
  shareMemory(program, buckets, &BucketBuffers::gradient);
  FlatSymbolRefAttr first = buildLoopSequence<zrt::ReduceScatterOp>(
      program, buckets, "first", &ProgramBuilder::storeKernel);
  FlatSymbolRefAttr next = buildLoopSequence<zrt::ReduceScatterAddOp>(
      program, buckets, "next", &ProgramBuilder::addKernel);
  buildRoleChanges();

  transition("idle", Event::begin, "first", {});
  transition("first", Event::arrive, "first", {store}, first);
  transition("first", Event::accumulate, "between", {}, first);
  end("first", {}, first);
  // Ranks that discard a backward pass may have reduced different numbers of
  // buckets. The sequence runs to its end, so that all ranks stop at the same
  // bucket.
  transition("first", Event::discard, "idle", {}, first);
  transition("between", Event::begin, "next", {beginNext});
  end("between", {});
  transition("between", Event::discard, "idle", {reset});
  transition("next", Event::arrive, "next", {storeNext}, next);
  transition("next", Event::accumulate, "between", {}, next);
  end("next", {}, next);
  transition("next", Event::discard, "idle", {reset}, next);
}

/// The first backward pass stores gradients, later ones add, and apply reduces.
/// Exception: in a backward pass that the caller hints is the last, buckets are
/// reduced when they are complete. If another backward pass follows, sums
/// become addends again. Ranks may hint differently, so units allow none of
/// this: where ranks gather units between reductions, all must make the same
/// ones.
void ProtocolBuilder::buildSummedAtApply() {
  FlatSymbolRefAttr store = packHandler("arrive_first", /*accumulate=*/false);
  FlatSymbolRefAttr add = packHandler("arrive_next", /*accumulate=*/true);
  // In the first backward pass a missing gradient counts as zero. In later ones
  // it adds nothing.
  FlatSymbolRefAttr closeFirst =
      handler("close_first", [](HandlerBuilder &calls, BucketBuffers &bucket) {
        calls.call<zrt::FillMissingOp>(FlatSymbolRefAttr::get(bucket.op));
      });
  buildRoleChanges();
  bool sums = llvm::any_of(
      buckets, [](auto &entry) { return !entry.second.sums.empty(); });
  bool takesHints = sums && !hasUnits;
  FlatSymbolRefAttr only, last, reopen;
  Handlers reduce;
  if (sums) {
    reduce = {
        handler("reduce", [&](HandlerBuilder &calls, BucketBuffers &bucket) {
          emitSums(program, calls, bucket);
        })};
  }
  if (takesHints) {
    only = buildOnlySequence("only");
    last = buildSequence(program, buckets, "last",
                         [&](HandlerBuilder &calls, BucketBuffers &bucket,
                             auto) { emitSums(program, calls, bucket); });
    reopen =
        handler("reopen", [&](HandlerBuilder &calls, BucketBuffers &bucket) {
          emitUnreduce(program, calls, bucket);
        });
  }
  Handlers reduceFirst = reduce;
  reduceFirst.insert(reduceFirst.begin(), closeFirst);

  transition("idle", Event::begin, "first", {});
  transition("first", Event::arrive, "first", {store});
  transition("first", Event::accumulate, "between", {closeFirst});
  end("first", reduceFirst);
  transition("first", Event::discard, "idle", {});
  transition("between", Event::begin, "next", {beginNext});
  end("between", reduce);
  transition("between", Event::discard, "idle", {reset});
  transition("next", Event::arrive, "next", {add});
  transition("next", Event::accumulate, "between", {});
  end("next", reduce);
  transition("next", Event::discard, "idle", {reset});
  if (!takesHints)
    return;
  transition("idle", Event::begin_last, "only", {});
  transition("only", Event::arrive, "only", {store}, only);
  transition("only", Event::accumulate, "reduced", {}, only);
  end("only", {}, only);
  transition("only", Event::discard, "idle", {}, only);
  transition("between", Event::begin_last, "last", {beginNext});
  transition("last", Event::arrive, "last", {add}, last);
  transition("last", Event::accumulate, "reduced", {}, last);
  end("last", {}, last);
  transition("last", Event::discard, "idle", {reset}, last);
  transition("reduced", Event::begin, "next", {reopen, beginNext});
  transition("reduced", Event::begin_last, "last", {reopen, beginNext});
  end("reduced", {});
  transition("reduced", Event::discard, "idle", {reset});
}

void ProtocolBuilder::build(bool oneBackward) {
  shareMemory(program, buckets, &BucketBuffers::reduceBuffer);
  if (oneBackward)
    buildOneBackward();
  else if (buckets.front().second.summedInLoop)
    buildSummedInLoop();
  else
    buildSummedAtApply();
  Handlers apply{ends.update}, discard;
  if (ends.undo)
    discard.push_back(ends.undo);
  llvm::append_range(apply, getReset());
  llvm::append_range(discard, getReset());
  transition("measured", Event::apply, "idle", apply);
  transition("measured", Event::discard, "idle", discard);
}

void zero::buildProtocol(ProgramBuilder &program, BucketMap &buckets,
                         const ApplyHandlers &handlers, bool oneBackward) {
  bool hasUnits = buildUnits(program, buckets);
  ProtocolBuilder(program, buckets, handlers, hasUnits).build(oneBackward);
  if (hasUnits)
    addUnitTransitions(program);
}
