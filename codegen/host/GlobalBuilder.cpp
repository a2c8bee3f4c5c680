//===- GlobalBuilder.cpp - Constants of a library as LLVM globals ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/GlobalBuilder.h"

using namespace mlir;
using namespace zero;

/// The prefix of the symbols of tables, which no kernel can have.
static constexpr StringLiteral kPrefix = "zero.table.";

std::string GlobalBuilder::getSymbol(StringRef name) const {
  return (kPrefix + prefix + name).str();
}

Constant GlobalBuilder::dense(StringRef name, Type element,
                              DenseElementsAttr values) {
  if (values.empty())
    return {};
  Type type = LLVM::LLVMArrayType::get(element, values.getNumElements());
  builder.create<LLVM::GlobalOp>(loc, type, /*isConstant=*/true,
                                 LLVM::Linkage::Internal, getSymbol(name),
                                 values);
  return {0, 0, getSymbol(name)};
}

Constant GlobalBuilder::words(StringRef name, ArrayRef<int64_t> words) {
  auto type = RankedTensorType::get({static_cast<int64_t>(words.size())},
                                    builder.getI64Type());
  return dense(name, builder.getI64Type(), DenseElementsAttr::get(type, words));
}

Constant GlobalBuilder::indices(StringRef name, ArrayRef<int32_t> indices) {
  auto type = RankedTensorType::get({static_cast<int64_t>(indices.size())},
                                    builder.getI32Type());
  return dense(name, builder.getI32Type(),
               DenseElementsAttr::get(type, indices));
}

Constant GlobalBuilder::bytes(StringRef name, StringRef bytes) {
  if (bytes.empty())
    return {};
  Type type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size());
  builder.create<LLVM::GlobalOp>(loc, type, /*isConstant=*/true,
                                 LLVM::Linkage::Internal, getSymbol(name),
                                 builder.getStringAttr(bytes));
  return {0, 0, getSymbol(name)};
}

Constant GlobalBuilder::string(StringRef name, StringRef text) {
  return bytes(name, (text + Twine('\0')).str());
}

Constant GlobalBuilder::aggregate(StringRef name, Type type,
                                  ArrayRef<Constant> fields) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  OpBuilder::InsertionGuard guard(builder);
  auto global = builder.create<LLVM::GlobalOp>(loc, type, /*isConstant=*/true,
                                               LLVM::Linkage::Internal,
                                               getSymbol(name), Attribute());
  builder.setInsertionPointToEnd(&global.getInitializerRegion().emplaceBlock());
  Value value = builder.create<LLVM::UndefOp>(loc, type);
  for (auto [i, field] : llvm::enumerate(fields)) {
    Value element;
    if (field.width)
      element = builder.create<LLVM::ConstantOp>(
          loc, builder.getIntegerType(field.width),
          builder.getIntegerAttr(builder.getIntegerType(field.width),
                                 static_cast<int64_t>(field.value)));
    else if (field.symbol.empty())
      element = builder.create<LLVM::ZeroOp>(loc, pointer);
    else
      element = builder.create<LLVM::AddressOfOp>(loc, pointer, field.symbol);
    value = builder.create<LLVM::InsertValueOp>(loc, value, element,
                                                static_cast<int64_t>(i));
  }
  builder.create<LLVM::ReturnOp>(loc, value);
  return {0, 0, getSymbol(name)};
}

Constant GlobalBuilder::pointers(StringRef name,
                                 ArrayRef<std::string> symbols) {
  if (symbols.empty())
    return {};
  SmallVector<Constant> fields;
  for (const std::string &symbol : symbols)
    fields.push_back({0, 0, symbol});
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  return aggregate(name, LLVM::LLVMArrayType::get(pointer, symbols.size()),
                   fields);
}

Constant GlobalBuilder::structure(StringRef name, ArrayRef<Constant> fields) {
  SmallVector<Type> types;
  for (const Constant &field : fields)
    types.push_back(field.width
                        ? Type(builder.getIntegerType(field.width))
                        : LLVM::LLVMPointerType::get(builder.getContext()));
  return aggregate(
      name, LLVM::LLVMStructType::getLiteral(builder.getContext(), types),
      fields);
}
