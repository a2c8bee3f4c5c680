//===- AttributeMutations.cpp - Other numbers, names, flags and types -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutations.h"

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

namespace {

/// Collects the changes of one attribute.
class Changes {
public:
  Changes(Operation *op, unsigned index, std::vector<Mutation> &mutations)
      : op(op), index(index), mutations(mutations) {}

  void addAll();

private:
  void add(StringAttr name, StringRef what, Attribute value) {
    mutations.push_back({op->getName().getStringRef().str() + " " +
                             name.getValue().str() + ": " + what.str(),
                         index, [index = index, name, value](const Ops &ops) {
                           if (value)
                             ops[index]->setAttr(name, value);
                           else
                             ops[index]->removeAttr(name);
                         }});
  }
  SmallVector<FlatSymbolRefAttr> getOthers(FlatSymbolRefAttr symbol);
  void addArray(StringAttr name, ArrayAttr array);
  void addAxes(StringAttr name, ArrayAttr array);
  void addIntegers(StringAttr name, DenseI64ArrayAttr array);
  void addType(StringAttr name, TypeAttr attribute);
  void addTensorType(StringAttr name, RankedTensorType type);
  template <typename AttrT, typename EnumT>
  bool addEnum(StringAttr name, Attribute value, EnumT last);

  Operation *op;
  unsigned index;
  std::vector<Mutation> &mutations;
};

} // namespace

/// Symbols of the same kind of op, beside this one: the nearest three.
SmallVector<FlatSymbolRefAttr> Changes::getOthers(FlatSymbolRefAttr symbol) {
  Operation *target = SymbolTable::lookupNearestSymbolFrom(op, symbol);
  if (!target)
    return {};
  SmallVector<FlatSymbolRefAttr> others;
  auto consider = [&](Operation *other) {
    auto name = other->getAttrOfType<StringAttr>("sym_name");
    if (other->getName() == target->getName() && name && others.size() < 3)
      others.push_back(FlatSymbolRefAttr::get(name));
  };
  Operation *before = target->getPrevNode(), *after = target->getNextNode();
  while (before || after) {
    if (before) {
      consider(before);
      before = before->getPrevNode();
    }
    if (after) {
      consider(after);
      after = after->getNextNode();
    }
  }
  return others;
}

void Changes::addArray(StringAttr name, ArrayAttr array) {
  SmallVector<Attribute> values(array.getValue());
  auto addChanged = [&](StringRef what, ArrayRef<Attribute> changed) {
    add(name, what, ArrayAttr::get(op->getContext(), changed));
  };
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && values[i] != values[i - 1]) {
      auto changed = values;
      std::swap(changed[i], changed[i - 1]);
      addChanged("entries swapped", changed);
    }
    auto without = values;
    without.erase(without.begin() + i);
    addChanged("entry lost", without);
    auto twice = values;
    twice.insert(twice.begin() + i, values[i]);
    addChanged("entry twice", twice);
    auto changed = values;
    if (auto symbol = dyn_cast<FlatSymbolRefAttr>(values[i])) {
      for (FlatSymbolRefAttr other : getOthers(symbol)) {
        changed[i] = other;
        addChanged("another entry", changed);
      }
    } else if (auto access = dyn_cast<zrt::AccessAttr>(values[i])) {
      for (uint32_t other = 0; other < 3; ++other) {
        if (other == uint32_t(access.getValue()))
          continue;
        changed[i] = zrt::AccessAttr::get(op->getContext(), zrt::Access(other));
        addChanged("another access", changed);
      }
    } else if (auto type = dyn_cast<TypeAttr>(values[i])) {
      Builder builder(op->getContext());
      for (Type other :
           {Type(builder.getF32Type()), Type(builder.getBF16Type())}) {
        if (other == type.getValue())
          continue;
        changed[i] = TypeAttr::get(other);
        addChanged("another type", changed);
      }
    }
  }
  if (name == "axes" || name == "own" || name == "replicated")
    addAxes(name, array);
}

/// Names of the axes that |op|'s step is on.
static SmallVector<Attribute> getAxes(Operation *op) {
  SmallVector<Attribute> names;
  auto module = op->getParentOfType<ModuleOp>();
  for (auto mesh : module.getOps<MeshOp>())
    for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
      names.push_back(axis.getName());
  return names;
}

void Changes::addAxes(StringAttr name, ArrayAttr array) {
  for (Attribute axis : getAxes(op)) {
    if (llvm::is_contained(array, axis))
      continue;
    SmallVector<Attribute> more(array.getValue());
    more.push_back(axis);
    add(name, "an axis more", ArrayAttr::get(op->getContext(), more));
    for (size_t i = 0; i < array.size(); ++i) {
      SmallVector<Attribute> changed(array.getValue());
      changed[i] = axis;
      add(name, "another axis", ArrayAttr::get(op->getContext(), changed));
    }
  }
  if (name != "axes")
    add(name, "cleared", {});
}

void Changes::addIntegers(StringAttr name, DenseI64ArrayAttr array) {
  SmallVector<int64_t> values(array.asArrayRef());
  auto addChanged = [&](StringRef what, ArrayRef<int64_t> changed) {
    add(name, what, DenseI64ArrayAttr::get(op->getContext(), changed));
  };
  for (size_t i = 0; i < values.size(); ++i) {
    for (int64_t delta : {-1, 1}) {
      auto changed = values;
      changed[i] += delta;
      addChanged(delta < 0 ? "one less" : "one more", changed);
    }
    if (i > 0 && values[i] != values[i - 1]) {
      auto changed = values;
      std::swap(changed[i], changed[i - 1]);
      addChanged("entries swapped", changed);
    }
    auto without = values;
    without.erase(without.begin() + i);
    addChanged("entry lost", without);
  }
}

void Changes::addType(StringAttr name, TypeAttr attribute) {
  Builder builder(op->getContext());
  SmallVector<Type> others = {builder.getF32Type(), builder.getBF16Type(),
                              builder.getF64Type()};
  if (isa<FloatType>(attribute.getValue())) {
    for (Type other : others)
      if (other != attribute.getValue())
        add(name, "another element type", TypeAttr::get(other));
    return;
  }
  if (auto tensor = dyn_cast<RankedTensorType>(attribute.getValue()))
    return addTensorType(name, tensor);
  auto type = dyn_cast<ValueType>(attribute.getValue());
  if (!type)
    return;
  for (Type other : others)
    if (other != type.getElementType())
      add(name, "another element type",
          TypeAttr::get(type.withElementType(other)));
  // Another placement over one axis of several.
  int64_t last = static_cast<int64_t>(type.getShape().size()) - 1;
  for (Attribute axis : getAxes(op))
    for (PlacementKind kind :
         {PlacementKind::Replicated, PlacementKind::Partial,
          PlacementKind::Sharded}) {
      AxisPlacement placement{cast<StringAttr>(axis), kind, 0, false};
      if (kind == PlacementKind::Sharded)
        placement.dim = std::max<int64_t>(last, 0);
      // What no type can say (value_c8).
      size_t stages = type.getCoordinates(placement.axis).size();
      if ((stages > 0 && kind == PlacementKind::Sharded) ||
          (stages == 1 && kind == PlacementKind::Partial))
        continue;
      if (type.getPlacement(placement.axis).kind != kind && last >= 0 &&
          !type.getPlacements().empty())
        add(name, "another placement over an axis",
            TypeAttr::get(type.withPlacement(placement)));
    }
  if (!type.getPlacements().empty() || !type.getScale().empty())
    add(name, "no placement",
        TypeAttr::get(ValueType::getSorted(op->getContext(), type.getShape(),
                                           type.getElementType())));
}

void Changes::addTensorType(StringAttr name, RankedTensorType type) {
  Builder builder(op->getContext());
  for (Type other : {Type(builder.getBF16Type()), Type(builder.getI32Type())})
    add(name, "another element type", TypeAttr::get(type.clone(other)));
  SmallVector<int64_t> shape(type.getShape());
  auto addShape = [&](StringRef what, ArrayRef<int64_t> changed) {
    add(name, what, TypeAttr::get(type.clone(changed)));
  };
  for (size_t i = 0; i < shape.size(); ++i) {
    auto changed = shape;
    bool isDynamic = ShapedType::isDynamic(shape[i]);
    changed[i] = isDynamic ? 5 : shape[i] + 1;
    addShape("another extent", changed);
    if (!isDynamic) {
      changed[i] = ShapedType::kDynamic;
      addShape("an extent that is not known", changed);
    }
    auto without = shape;
    without.erase(without.begin() + i);
    addShape("a dimension less", without);
  }
}

template <typename AttrT, typename EnumT>
bool Changes::addEnum(StringAttr name, Attribute value, EnumT last) {
  auto known = dyn_cast<AttrT>(value);
  if (!known)
    return false;
  for (uint32_t other = 0; other <= uint32_t(last); ++other)
    if (other != uint32_t(known.getValue()))
      add(name, "another case", AttrT::get(op->getContext(), EnumT(other)));
  return true;
}

void Changes::addAll() {
  MLIRContext *context = op->getContext();
  static const llvm::StringSet<> flags = {"accumulate", "predicated", "sums",
                                          "on_demand", "optional"};
  for (StringAttr name : op->getRegisteredInfo()->getAttributeNames())
    if (flags.contains(name.getValue()) && !op->hasAttr(name))
      add(name, "set", UnitAttr::get(context));
  if (auto launch = dyn_cast<zrt::LaunchOp>(op); launch && !launch.getOwn())
    for (Attribute axis : getAxes(op))
      add(launch.getOwnAttrName(), "set", ArrayAttr::get(context, axis));
  for (NamedAttribute named : op->getAttrs()) {
    StringAttr name = named.getName();
    Attribute value = named.getValue();
    if (name == "sym_name") {
      // No op names an activation.
      if (isa<ActivationOp>(op))
        add(name, "another name", StringAttr::get(context, "other"));
      continue;
    }
    if (isa<UnitAttr>(value)) {
      add(name, "cleared", {});
    } else if (auto symbol = dyn_cast<FlatSymbolRefAttr>(value)) {
      for (FlatSymbolRefAttr other : getOthers(symbol))
        add(name, "another symbol", other);
      if (name == "sequence" || name == "shares" || name == "staging" ||
          name == "master")
        add(name, "cleared", {});
    } else if (auto array = dyn_cast<ArrayAttr>(value)) {
      addArray(name, array);
    } else if (auto integers = dyn_cast<DenseI64ArrayAttr>(value)) {
      addIntegers(name, integers);
    } else if (auto floats = dyn_cast<DenseF64ArrayAttr>(value)) {
      for (size_t i = 0; i < size_t(floats.size()); ++i) {
        SmallVector<double> changed(floats.asArrayRef());
        changed[i] += 0.5;
        add(name, "another number", DenseF64ArrayAttr::get(context, changed));
      }
    } else if (auto integer = dyn_cast<IntegerAttr>(value);
               integer && integer.getType().isInteger(64)) {
      for (int64_t delta : {-1, 1})
        add(name, delta < 0 ? "one less" : "one more",
            IntegerAttr::get(integer.getType(), integer.getInt() + delta));
    } else if (auto number = dyn_cast<FloatAttr>(value)) {
      add(name, "another number",
          FloatAttr::get(number.getType(),
                         number.getValueAsDouble() * 2 + 0.5));
    } else if (auto type = dyn_cast<TypeAttr>(value)) {
      addType(name, type);
    } else if (addEnum<zrt::RoleAttr>(name, value, zrt::Role::staging) ||
               addEnum<zrt::SpaceAttr>(name, value, zrt::Space::host) ||
               addEnum<zrt::EventAttr>(name, value, zrt::Event::discard)) {
      continue;
    } else if (auto text = dyn_cast<StringAttr>(value);
               text && isa<zrt::TransitionOp>(op)) {
      for (StringRef state : {"idle", "first", "between", "next"})
        if (state != text.getValue())
          add(name, "another state", StringAttr::get(context, state));
    } else if (text && isa<ActivationOp>(op)) {
      for (Attribute axis : getAxes(op))
        if (axis != text)
          add(name, "another axis", axis);
    } else if (text && isa<zrt::StateOp>(op)) {
      for (StringRef role : {"parameter", "master", "m", "v"})
        if (role != text.getValue())
          add(name, "another role", StringAttr::get(context, role));
    }
  }
}

void test::addAttributeMutations(ModuleOp module,
                                 std::vector<Mutation> &mutations) {
  for (auto [index, op] : llvm::enumerate(getOps(module)))
    if (!isa<ModuleOp>(op) && op->getRegisteredInfo())
      Changes(op, index, mutations).addAll();
}
