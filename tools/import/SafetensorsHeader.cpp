//===- SafetensorsHeader.cpp - Shapes of safetensors, without data --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file has eight bytes that say how long its header is, the header as JSON,
// and the data. The data of a model is large and is not read.
//
//===----------------------------------------------------------------------===//

#include "tools/import/Model.h"
#include "tools/import/ReadJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

#include <map>
#include <set>

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

static constexpr uint64_t kLengthBytes = 8;
/// What the format allows.
static constexpr uint64_t kMostHeaderBytes = 100'000'000;

/// A dtype of the format, such as "F32" or "F8_E4M3".
struct FileType {
  int64_t bytes = 0;    // of an element; 0: there is no such dtype
  bool isFloat = false; // others are positions, masks or counters
};

static FileType readFileType(StringRef text) {
  if (text == "BOOL")
    return {1, false};
  auto [name, variant] = text.split('_');
  StringRef digits = name.ltrim("BFIU");
  StringRef kind = name.drop_back(digits.size());
  int64_t bits = 0;
  if (!llvm::is_contained({"F", "BF", "I", "U"}, kind) ||
      digits.getAsInteger(10, bits) ||
      !llvm::is_contained({8, 16, 32, 64}, bits))
    return {};
  return {bits / 8, kind.ends_with("F")};
}

/// Whether |object| has as many bytes of data as |shape| has in |type|.
static bool hasAllBytes(const json::Object &object, const FileType &type,
                        ArrayRef<int64_t> shape) {
  const json::Array *offsets = object.getArray("data_offsets");
  if (!offsets || offsets->size() != 2)
    return false;
  std::optional<int64_t> begin = (*offsets)[0].getAsInteger();
  std::optional<int64_t> end = (*offsets)[1].getAsInteger();
  int64_t bytes = type.bytes;
  for (int64_t extent : shape)
    if (llvm::MulOverflow(bytes, extent, bytes))
      return false;
  return begin && end && *begin >= 0 && *end >= *begin &&
         *end - *begin == bytes;
}

/// What a module keeps beside its parameters, and some files have.
static bool isBuffer(StringRef name) {
  for (StringRef suffix :
       {".attn.bias", ".attn.masked_bias", ".attention.bias",
        ".attention.masked_bias", ".rotary_emb.inv_freq", ".running_mean",
        ".running_var", ".weight_scale_inv"})
    if (name.ends_with(suffix))
      return true;
  return false;
}

/// Whether |name|, of |shape|, is a mask: a bias has one dimension.
static bool isNoParameter(StringRef name, ArrayRef<int64_t> shape) {
  return isBuffer(name) && !(name.ends_with(".bias") && shape.size() == 1);
}

static LogicalResult readEntry(StringRef name, const json::Value &value,
                               ParameterList &list, std::string &message) {
  const json::Object *object = value.getAsObject();
  auto dtype = object ? object->getString("dtype") : std::nullopt;
  const json::Array *extents = object ? object->getArray("shape") : nullptr;
  ListedParameter parameter;
  parameter.name = name.str();
  bool isRight = dtype && extents && !name.empty();
  for (size_t i = 0; isRight && i < extents->size(); ++i) {
    std::optional<int64_t> extent = (*extents)[i].getAsInteger();
    isRight = extent && *extent >= 0;
    parameter.shape.push_back(extent.value_or(0));
  }
  if (!isRight) {
    message = "tensor '" + cutText(name) +
              "' must have a name, a dtype such as \"F32\" and a shape of "
              "extents of at least 0";
    return failure();
  }
  FileType type = readFileType(*dtype);
  if (type.bytes == 0) {
    message = "tensor '" + cutText(name) + "' has dtype '" + cutText(*dtype) +
              "', which the format does not have";
    return failure();
  }
  if (!hasAllBytes(*object, type, parameter.shape)) {
    message = "tensor '" + cutText(name) +
              "' has data_offsets that do not fit its dtype and shape: the "
              "file is damaged";
    return failure();
  }
  if (!type.isFloat || isNoParameter(name, parameter.shape))
    return success();
  if (parameter.shape.empty())
    parameter.shape.push_back(1);
  list.parameters.push_back(std::move(parameter));
  return success();
}

/// Where the data of |value| begins and ends: files have tensors in the order
/// of the model.
static std::pair<int64_t, int64_t> getPlace(const json::Value &value) {
  const json::Object *object = value.getAsObject();
  const json::Array *offsets =
      object ? object->getArray("data_offsets") : nullptr;
  if (!offsets || offsets->size() != 2)
    return {0, 0};
  return {(*offsets)[0].getAsInteger().value_or(0),
          (*offsets)[1].getAsInteger().value_or(0)};
}

static LogicalResult readHeader(StringRef header, StringRef path,
                                ParameterList &list, std::string &message) {
  std::optional<json::Value> root = readJson(header, path, message);
  if (!root)
    return failure();
  const json::Object *object = root->getAsObject();
  if (!object) {
    message =
        (path + ": the header must be an object of tensors by name").str();
    return failure();
  }
  std::map<std::pair<std::pair<int64_t, int64_t>, StringRef>,
           const json::Value *>
      inOrder;
  for (const auto &[key, value] : *object)
    if (StringRef(key) != "__metadata__")
      inOrder.emplace(std::make_pair(getPlace(value), StringRef(key)), &value);
  int64_t end = 0; // of the tensors so far
  for (auto [key, value] : inOrder) {
    if (failed(readEntry(key.second, *value, list, message))) {
      message = (path + ": " + message).str();
      return failure();
    }
    if (key.first.first < end) {
      message = (path + ": tensor '" + cutText(key.second) +
                 "' has bytes of another one: the file is damaged")
                    .str();
      return failure();
    }
    end = key.first.second;
  }
  return success();
}

LogicalResult zero::readSafetensorsHeader(StringRef path, ParameterList &list,
                                          ExitCode &code,
                                          std::string &message) {
  code = ExitCode::environment;
  uint64_t size = 0;
  auto fail = [&](const Twine &text) {
    message = (path + ": " + text).str();
    return failure();
  };
  if (std::error_code error = llvm::sys::fs::file_size(path, size))
    return fail(error.message());
  auto read = [&](uint64_t begin, uint64_t length) {
    return llvm::MemoryBuffer::getFileSlice(path, length, begin);
  };
  code = ExitCode::failed;
  if (size < kLengthBytes)
    return fail("has " + Twine(size) +
                " bytes, expected at least 8 for the header's length: the file "
                "is truncated, or is not safetensors");
  auto first = read(0, kLengthBytes);
  if (!first)
    return fail(first.getError().message());
  uint64_t length = llvm::support::endian::read64le((*first)->getBufferStart());
  if (length > std::min(size - kLengthBytes, kMostHeaderBytes))
    return fail(llvm::formatv("the header has {0} bytes, and the file has {1} "
                              "after the header's length: the file is "
                              "truncated, or is not safetensors",
                              length, size - kLengthBytes)
                    .str());
  auto header = read(kLengthBytes, length);
  if (!header)
    return fail(header.getError().message());
  return readHeader((*header)->getBuffer(), path, list, message);
}

LogicalResult zero::readSafetensorsIndex(const json::Object &index,
                                         StringRef path, ParameterList &list,
                                         ExitCode &code, std::string &message) {
  code = ExitCode::failed;
  auto fail = [&](const Twine &text) {
    message = (path + ": " + text).str();
    return failure();
  };
  const json::Object *map = index.getObject("weight_map");
  if (!map)
    return fail("'weight_map' must be an object of files by tensor");
  std::map<std::string, std::set<std::string>> byFile;
  for (const auto &[key, value] : *map) {
    std::optional<StringRef> file = value.getAsString();
    if (!file || file->empty() || *file != llvm::sys::path::filename(*file) ||
        file->starts_with(".") || file->contains('\0'))
      return fail("'weight_map." + cutText(StringRef(key)) + "' is " +
                  cutValue(value) +
                  ", expected the name of a file in the same folder");
    byFile[file->str()].insert(StringRef(key).str());
  }
  for (const auto &[file, names] : byFile) {
    llvm::SmallString<128> shard = llvm::sys::path::parent_path(path);
    llvm::sys::path::append(shard, file);
    if (!llvm::sys::fs::exists(shard)) {
      code = ExitCode::environment;
      return fail("the file '" + cutText(file) + "' with " +
                  Twine(names.size()) +
                  " tensors is not in the folder; download it, or list the "
                  "parameters as JSON");
    }
    size_t before = list.parameters.size();
    if (failed(readSafetensorsHeader(shard, list, code, message)))
      return failure();
    std::set<std::string> found;
    for (size_t i = before; i < list.parameters.size(); ++i)
      found.insert(list.parameters[i].name);
    for (const std::string &name : found)
      if (!names.count(name))
        return fail("'" + cutText(file) + "' has the tensor '" + cutText(name) +
                    "', which 'weight_map' does not have there");
    for (const std::string &name : names)
      if (!found.count(name) && !isBuffer(name))
        return fail("'weight_map' has the tensor '" + cutText(name) + "' in '" +
                    cutText(file) + "', and the file has no such parameter");
  }
  return success();
}
