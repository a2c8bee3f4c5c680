//===- Walker.cpp - The calls that the IR says a step makes ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Walker.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

Walker::Walker(ModuleOp module)
    : program(*module.getOps<zrt::ProgramOp>().begin()) {
  state = (*program.getOps<zrt::TransitionOp>().begin()).getState().str();
  for (auto bucket : module.getOps<BucketOp>())
    for (auto member : bucket.getMembers().getAsRange<FlatSymbolRefAttr>())
      bucketOf[member.getValue()] = FlatSymbolRefAttr::get(bucket);
}

zrt::TransitionOp Walker::find(zrt::Event event) {
  for (auto transition : program.getOps<zrt::TransitionOp>())
    if (transition.getState() == state && transition.getEvent() == event)
      return transition;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// When handlers run
//===----------------------------------------------------------------------===//

void Walker::walk(zrt::Event event, StringRef parameter) {
  zrt::TransitionOp transition = find(event);
  if (!transition && event == zrt::Event::begin_last)
    transition = find(zrt::Event::begin);
  if (!transition) {
    trace.push_back("refused in state " + state);
    return;
  }
  zrt::SequenceOp sequence = getSequence(transition);
  if (transition.begins()) {
    closed = 0;
    outstanding.clear();
    for (auto op : program->getParentOfType<ModuleOp>().getOps<ParameterOp>())
      if (!op.getFrozen())
        outstanding[bucketOf[op.getSymName()]] += op.getUses();
  }
  if (event == zrt::Event::arrive) {
    if (sequence && !isOpen(sequence, bucketOf[parameter])) {
      waiting.push_back(parameter.str());
      return;
    }
    arrive(transition, parameter);
    if (sequence)
      closeComplete(sequence);
    return;
  }
  if (sequence)
    while (closed < int64_t(sequence.getBuckets().size()))
      close(sequence);
  run(transition, "");
}

zrt::SequenceOp Walker::getSequence(zrt::TransitionOp transition) {
  if (!transition.getSequenceAttr())
    return nullptr;
  return program.lookupSymbol<zrt::SequenceOp>(transition.getSequenceAttr());
}

FlatSymbolRefAttr Walker::getBucket(zrt::SequenceOp sequence, int64_t i) {
  return cast<FlatSymbolRefAttr>(sequence.getBuckets()[i]);
}

bool Walker::isOpen(zrt::SequenceOp sequence, FlatSymbolRefAttr bucket) {
  int64_t place =
      llvm::find(sequence.getBuckets(), bucket) - sequence.getBuckets().begin();
  return place >= closed &&
         place < closed + static_cast<int64_t>(sequence.getWindow());
}

void Walker::arrive(zrt::TransitionOp transition, StringRef parameter) {
  run(transition, parameter);
  --outstanding[bucketOf[parameter]];
}

/// Closes the next bucket; another one opens, and takes what waits for it.
void Walker::close(zrt::SequenceOp sequence) {
  run(cast<FlatSymbolRefAttr>(sequence.getHandlers()[closed]), "");
  int64_t opened = closed++ + sequence.getWindow();
  if (opened >= int64_t(sequence.getBuckets().size()))
    return;
  std::vector<std::string> others;
  for (const std::string &parameter : std::exchange(waiting, {})) {
    if (bucketOf[parameter] == getBucket(sequence, opened))
      arrive(find(zrt::Event::arrive), parameter);
    else
      others.push_back(parameter);
  }
  waiting = others;
}

void Walker::closeComplete(zrt::SequenceOp sequence) {
  while (closed < int64_t(sequence.getBuckets().size()) &&
         outstanding[getBucket(sequence, closed)] == 0)
    close(sequence);
}

void Walker::run(zrt::TransitionOp transition, StringRef parameter) {
  for (auto handler : transition.getHandlers().getAsRange<FlatSymbolRefAttr>())
    run(handler, parameter);
  state = transition.getNext().str();
}

void Walker::run(FlatSymbolRefAttr handler, StringRef parameter) {
  ++handlers[handler.getValue()];
  auto op = program.lookupSymbol<zrt::HandlerOp>(handler);
  for (Operation &call : op.getBody().getOps())
    trace.push_back(getText(call, parameter));
}

//===----------------------------------------------------------------------===//
// What they call
//===----------------------------------------------------------------------===//

using Operands = std::vector<std::string>;

static std::string nameOf(FlatSymbolRefAttr symbol) {
  return symbol.getValue().str();
}

/// Slots that each program writes, in the order of their declaration.
static Operands getWritten(zrt::ProgramOp program, FlatSymbolRefAttr scalars) {
  auto op = program.lookupSymbol<zrt::ScalarsOp>(scalars);
  Operands written;
  for (auto slots : program.getOps<zrt::SlotsOp>())
    for (int64_t i = 0; i < slots.size(); ++i)
      if (llvm::any_of(op.getBody().getOps<zrt::StoreSlotOp>(),
                       [&](auto store) {
                         return store.getSlots() == slots.getSymName() &&
                                int64_t(store.getIndex()) == i;
                       }))
        written.push_back("writes " + slotText(slots.getSymName().str(), i));
  return written;
}

/// Axes in the order of the mesh, each with a space behind it.
static std::string getAxes(zrt::ProgramOp program, ArrayAttr names) {
  auto module = program->getParentOfType<ModuleOp>();
  auto mesh = module.lookupSymbol<MeshOp>(program.getMeshAttr());
  std::string text;
  for (StringAttr axis :
       mesh.sortAxes(SmallVector<StringAttr>(names.getAsRange<StringAttr>())))
    text += axis.str() + " ";
  return text;
}

/// How many ops of this kind stand before |symbol|.
template <typename OpT>
static int64_t getPlace(zrt::ProgramOp program, StringRef symbol) {
  int64_t place = 0;
  for (auto op : program.getOps<OpT>()) {
    if (op.getSymName() == symbol)
      break;
    ++place;
  }
  return place;
}

static std::string streamOf(zrt::RuntimeCall call) {
  return streamText(static_cast<int64_t>(call.getStream()));
}

static std::string eventOf(zrt::ProgramOp program, FlatSymbolRefAttr symbol) {
  auto event = program.lookupSymbol<zrt::EventOp>(symbol);
  return nameOf(symbol) + " of " +
         streamText(static_cast<int64_t>(event.getStream()));
}

static void addLaunch(zrt::ProgramOp program, zrt::LaunchOp op,
                      Operands &operands) {
  operands.push_back("kernel " + std::to_string(getPlace<zrt::KernelOp>(
                                     program, op.getKernel())));
  int64_t elements = 0;
  for (auto buffer : op.getBuffers().getAsRange<FlatSymbolRefAttr>()) {
    operands.push_back(nameOf(buffer));
    elements = program.lookupSymbol<zrt::BufferOp>(buffer).getRowLength();
  }
  auto segments = program.lookupSymbol<zrt::SegmentsOp>(op.getSegmentsAttr());
  int64_t begin = 0;
  for (auto [i, end] : llvm::enumerate(segments.getEnds())) {
    std::string slot = "none";
    if (!segments.getScalars().empty())
      slot = slotText(nameOf(cast<FlatSymbolRefAttr>(
                          segments.getScalars()[segments.getRows()[i]])),
                      0);
    operands.push_back(segmentText(begin, end, slot));
    begin = end;
  }
  operands.push_back(std::to_string(elements) + " elements");
  operands.push_back(op.getOwn() ? "own " + getAxes(program, *op.getOwn())
                                 : "all");
  operands.push_back(
      op.getSumAttr()
          ? "sum " + slotText(nameOf(op.getSumAttr()), op.getSumIndex())
          : "no sum");
  operands.push_back(streamOf(op));
}

std::string Walker::getText(Operation &call, StringRef parameter) {
  Operands operands;
  auto add = [&](auto... texts) { (operands.push_back(texts), ...); };
  TypeSwitch<Operation *>(&call)
      .Case<zrt::AllocateOp, zrt::ReleaseOp>(
          [&](auto op) { add(nameOf(op.getBufferAttr())); })
      .Case([&](zrt::AllReduceOp op) {
        add(nameOf(op.getBufferAttr()), nameOf(op.getResultBuffer()),
            getAxes(program, op.getAxes()), streamOf(op));
      })
      .Case([&](zrt::AllGatherOp op) {
        add(nameOf(op.getBufferAttr()), getAxes(program, op.getAxes()),
            streamOf(op));
      })
      .Case<zrt::ReduceScatterOp, zrt::ReduceScatterAddOp>([&](auto op) {
        add(nameOf(op.getSourceAttr()), nameOf(op.getTargetAttr()),
            getAxes(program, op.getAxes()), streamOf(op));
      })
      .Case([&](zrt::CopyOp op) {
        add(nameOf(op.getSourceAttr()), nameOf(op.getTargetAttr()),
            streamOf(op));
      })
      .Case([&](zrt::KeepOnRootOp op) {
        add(nameOf(op.getBufferAttr()), getAxes(program, op.getAxes()));
      })
      .Case([&](zrt::CountReplicatedOnceOp op) {
        add(slotText(op.getSlots().str(), op.getIndex()),
            getAxes(program, op.getAxes()));
      })
      .Case([&](zrt::SetRoleOp op) {
        add(nameOf(op.getBufferAttr()),
            "role " + std::to_string(int64_t(op.getRole())));
      })
      .Case([&](zrt::PackOp op) {
        add("event 1", parameter.str(), std::string("tensor"),
            op.getAccumulate() ? "add" : "store");
      })
      .Case([&](zrt::FillMissingOp op) { add(nameOf(op.getBucketAttr())); })
      .Case([&](zrt::LaunchOp op) { addLaunch(program, op, operands); })
      .Case([&](zrt::RunScalarsOp op) {
        add("program " +
            std::to_string(getPlace<zrt::ScalarsOp>(program, op.getProgram())));
        llvm::append_range(operands, getWritten(program, op.getProgramAttr()));
      })
      .Case([&](zrt::CountArrivalsOp op) {
        add(slotText(op.getSlots().str(), 0), slotText(op.getSlots().str(), 1));
      })
      .Case([&](zrt::AllReduceScalarsOp op) {
        auto slots = program.lookupSymbol<zrt::SlotsOp>(op.getSlotsAttr());
        add(slotText(op.getSlots().str(), 0), std::to_string(slots.size()),
            getAxes(program, op.getAxes()), streamOf(op));
      })
      .Case([&](zrt::CommitOp op) { add(slotText(op.getOutcome().str(), 0)); })
      .Case([&](zrt::RecordOp op) { add(eventOf(program, op.getEventAttr())); })
      .Case([&](zrt::WaitOp op) {
        add(eventOf(program, op.getEventAttr()), streamOf(op));
      })
      .Case([&](zrt::WaitWritableOp) {
        for (auto table : program.getOps<zrt::BucketTableOp>())
          if (table.getBucketAttr() == bucketOf[parameter] &&
              table.getWritable())
            for (auto event :
                 table.getWritable()->getAsRange<FlatSymbolRefAttr>())
              add(eventOf(program, event));
      })
      .Case([&](zrt::CopyScalarsOp) {})
      .Default([&](Operation *) { add("unknown to the walker"); });
  return callText(call.getName().stripDialect().str(), operands);
}
