//===- ProgramCalls.cpp - What the handlers of a program call -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/ProgramCalls.h"

#include "dialect/zrt/CallDescription.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace zero;

ProgramCalls::ProgramCalls(zrt::ProgramOp program,
                           ArrayRef<StringAttr> stageAxes)
    : program(program),
      mesh(program->getParentOfType<ModuleOp>().lookupSymbol<MeshOp>(
          program.getMeshAttr())),
      stageAxes(stageAxes), symbols(program) {
  llvm::DenseMap<OperationName, int64_t> counts;
  for (Operation &op : program.getBody().front())
    if (auto name =
            op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      places[name] = counts[op.getName()]++;
}

static std::string nameOf(FlatSymbolRefAttr symbol) {
  return symbol.getValue().str();
}

/// The pipeline stages that have a value of |type|, a bit for each, row-major
/// over the axes of stages. 0: the value is the same on all of them over
/// |names|.
int64_t ProgramCalls::getStages(ArrayRef<StringAttr> names,
                                ValueType type) const {
  if (!type || llvm::all_of(names, [&](StringAttr axis) {
        return type.getCoordinates(axis).empty();
      }))
    return 0;
  MeshOp op = mesh;
  // From the last axis on, the stages over the axes so far.
  SmallVector<bool> isOn = {true};
  for (StringAttr axis : llvm::reverse(stageAxes)) {
    SmallVector<int64_t> held = type.getCoordinates(axis);
    SmallVector<bool> outer;
    for (int64_t c = 0; c < *op.getAxisSize(axis); ++c)
      for (bool inner : isOn)
        outer.push_back(inner && (held.empty() || llvm::is_contained(held, c)));
    isOn = std::move(outer);
  }
  int64_t stages = 0;
  for (auto [i, on] : llvm::enumerate(isOn))
    if (on)
      stages |= int64_t(1) << i;
  return stages;
}

std::string ProgramCalls::axes(ArrayRef<StringAttr> names,
                               ValueType type) const {
  if (names.empty())
    return "none";
  std::vector<std::string> texts;
  MeshOp op = mesh;
  for (StringAttr axis : op.sortAxes(SmallVector<StringAttr>(names)))
    texts.push_back(axis.str());
  return axesText(texts, getStages(names, type));
}

std::string ProgramCalls::axes(ArrayAttr names, ValueType type) const {
  return axes(SmallVector<StringAttr>(names.getAsRange<StringAttr>()), type);
}

std::string ProgramCalls::event(FlatSymbolRefAttr symbol) const {
  auto op = symbols.lookup<zrt::EventOp>(symbol);
  return eventText(nameOf(symbol), static_cast<int64_t>(op.getStream()));
}

std::string ProgramCalls::events(ArrayAttr list) const {
  std::string names;
  if (list)
    for (auto symbol : list.getAsRange<FlatSymbolRefAttr>())
      names += event(symbol) + " ";
  return names;
}

void ProgramCalls::addSegments(zrt::SegmentsOp segments,
                               Operands &operands) const {
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
  operands.push_back(number(begin) + " elements");
}

static std::string useText(zrt::CallArgument::Use use,
                           const std::string &text) {
  switch (use) {
  case zrt::CallArgument::Use::none:
    return text;
  case zrt::CallArgument::Use::reads:
    return "reads " + text;
  case zrt::CallArgument::Use::writes:
    return "writes " + text;
  }
  llvm_unreachable("unknown use");
}

/// Whether |argument| says what |value|, an attribute of its call, says.
static bool says(const zrt::CallArgument &argument, Attribute value) {
  using Kind = zrt::CallArgument::Kind;
  if (isa<FlatSymbolRefAttr>(value))
    return argument.symbol == value;
  if (auto stream = dyn_cast<zrt::StreamAttr>(value))
    return argument.kind == Kind::stream &&
           argument.number == static_cast<int64_t>(stream.getValue());
  if (auto role = dyn_cast<zrt::RoleAttr>(value))
    return argument.kind == Kind::role &&
           argument.number == static_cast<int64_t>(role.getValue());
  if (auto index = dyn_cast<IntegerAttr>(value))
    return argument.kind == Kind::slot && argument.number == index.getInt();
  if (isa<UnitAttr>(value))
    return argument.kind == Kind::flag && argument.number;
  return argument.list == value;
}

/// Adds the attributes of |call| that its description leaves out. Generated
/// code follows the description, too.
static void addLeftOut(zrt::RuntimeCall call,
                       const zrt::CallDescription &description,
                       Operands &operands) {
  for (NamedAttribute attribute : call->getAttrDictionary()) {
    bool isSaid =
        !call->getInherentAttr(attribute.getName()) ||
        (isa<UnitAttr>(attribute.getValue()) && description.isOnFirstStage()) ||
        (isa<zrt::StreamAttr>(attribute.getValue()) &&
         description.isOrderOfMemory()) ||
        llvm::any_of(description.getArguments(), [&](const auto &argument) {
          return says(argument, attribute.getValue());
        });
    if (!isSaid)
      operands.push_back("left out: " + attribute.getName().str());
  }
}

Operands ProgramCalls::getOperands(zrt::RuntimeCall call) {
  using Kind = zrt::CallArgument::Kind;
  Operands operands;
  zrt::CallDescription description(call);
  for (const zrt::CallArgument &argument : description.getArguments()) {
    auto add = [&](const std::string &text) {
      operands.push_back(useText(argument.use, text));
    };
    switch (argument.kind) {
    case Kind::buffer:
    case Kind::bucket:
    case Kind::parameter:
      add(nameOf(argument.symbol));
      break;
    case Kind::buffers:
      for (auto buffer : argument.list.getAsRange<FlatSymbolRefAttr>())
        add(nameOf(buffer));
      break;
    case Kind::kernel:
      add("kernel " + number(getPlace(argument.symbol)));
      break;
    case Kind::program:
      add("program " + number(getPlace(argument.symbol)));
      break;
    case Kind::segments:
      addSegments(symbols.lookup<zrt::SegmentsOp>(argument.symbol), operands);
      break;
    case Kind::axes:
      if (!argument.list)
        add("none");
      else
        add(axes(argument.list, argument.isAtPlace ? zrt::getPlace(tables, call)
                                                   : ValueType()));
      break;
    case Kind::slot:
      add(argument.symbol ? slotText(nameOf(argument.symbol), argument.number)
                          : "none");
      break;
    case Kind::slots:
      add(slotText(nameOf(argument.symbol), 0));
      operands.push_back(
          number(symbols.lookup<zrt::SlotsOp>(argument.symbol).size()) +
          " slots");
      break;
    case Kind::event:
      add(event(argument.symbol));
      break;
    case Kind::arrival:
      // Only kernels say what they do with a gradient.
      operands.push_back("the gradient of the event");
      break;
    case Kind::stream:
      add(streamText(argument.number));
      break;
    case Kind::role:
      add("role " + number(argument.number));
      break;
    case Kind::flag:
      add(argument.number ? "yes" : "no");
      break;
    }
  }
  addLeftOut(call, description, operands);
  return operands;
}

std::string ProgramCalls::getText(zrt::RuntimeCall call) {
  return callText(call->getName().stripDialect().str(), getOperands(call));
}
